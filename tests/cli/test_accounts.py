"""`mldiag goodput` on the run of a real program."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import list_runs
from support.command_line import CommandLine
from support.programs import Programs

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
    from mldiagnostics import machinelearning_run

    with machinelearning_run("trainer") as run:
        for step in range(20):
            run.step(step)
"""


@pytest.fixture(scope="module")
def mldiag(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line beside two runs of a program."""
    folder = tmp_path_factory.mktemp("runs")
    programs = Programs(folder, env={"MLDIAG_SINKS": "jsonl:"})
    for _ in range(2):
        ended = programs.run(PROGRAM)
        assert ended.code == 0, ended.err
    return CommandLine(folder, env={"MLDIAG_STORAGE": programs.storage, "ML_GOODPUT_CACHE_DIR": str(folder)})


@pytest.fixture(scope="module")
def ids(mldiag: CommandLine) -> list[str]:
    return [row.run_id for row in list_runs(mldiag.env["MLDIAG_STORAGE"])]


def test_a_run_has_a_table_and_the_same_report_as_json(mldiag: CommandLine, ids: list[str]) -> None:
    shown = mldiag.lines("goodput", ids[0][:12], "--window", "1h")
    assert any(line.startswith("  productive") for line in shown)
    assert any(line.startswith("  last 1 h") for line in shown)
    [report] = mldiag.document("goodput", f"{mldiag.env['MLDIAG_STORAGE']}/{ids[0]}")
    assert report["name"] == f"{mldiag.env['MLDIAG_STORAGE']}/{ids[0]}"
    assert report["steps"]["count"] >= 19  # the last step ends with the run


def test_several_runs_stand_side_by_side(mldiag: CommandLine, ids: list[str]) -> None:
    assert len(mldiag.document("goodput", *ids)) == 2
    assert [line.split()[0] for line in mldiag.lines("goodput", *ids)].count("goodput") == 1


def test_a_page_is_one_file(mldiag: CommandLine, ids: list[str], tmp_path: Path) -> None:
    page = tmp_path / "goodput.html"
    assert mldiag.lines("goodput", ids[0], "-o", "html", "--out", str(page)) == []
    links = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value for name, value in attrs if name in {"src", "href"} and tag != "a")

    Links().feed(page.read_text())
    assert links == []


def test_errors_name_the_input_and_the_remedy(mldiag: CommandLine, ids: list[str]) -> None:
    assert "no run is given; give RUN" in mldiag.failure("goodput")
    assert "'soon': not a length of time" in mldiag.failure("goodput", ids[0], "--window", "soon", code=64)
    assert "does not end after its start" in mldiag.failure("goodput", ids[0], "--exclude-interval", "9", "8", code=64)
    assert "no run in" in mldiag.failure("goodput", "nope")
    assert "cannot be written: Is a directory" in mldiag.failure("goodput", ids[0], "--out", "/")
    root = mldiag.run("goodput", mldiag.env["MLDIAG_STORAGE"])
    assert root.code == 1
    assert [line.strip().partition(" /")[0] for line in root.err.splitlines()[1:]] == ["mldiag goodput"] * 2
