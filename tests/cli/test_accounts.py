"""`mldiag goodput` on the run of a real program, and on logs of long jobs."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.report import GoodputReport, from_json
from mldiagnostics.runs import list_runs
from mldiagnostics_cli.commands.goodput import goodput
from mldiagnostics_cli.program import program
from support.goodput.story import BEGIN, S, eventful, finished, write_log
from support.programs.command_line import CommandLine
from support.programs.processes import Programs

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
    assert shown[0].startswith("trainer ")
    assert any(line.startswith("  productive") for line in shown)
    assert any(line.startswith("  last 1 h") for line in shown)
    [report] = mldiag.document("goodput", f"{mldiag.env['MLDIAG_STORAGE']}/{ids[0]}")
    assert report["name"] == f"{mldiag.env['MLDIAG_STORAGE']}/{ids[0]}"
    assert report["steps"]["count"] >= 19  # the last step ends with the run


def test_several_runs_stand_side_by_side(mldiag: CommandLine, ids: list[str]) -> None:
    assert len(mldiag.document("goodput", *ids)) == 2
    assert [line.split()[0] for line in mldiag.lines("goodput", *ids)].count("goodput") == 1


def test_a_page_is_one_file(mldiag: CommandLine, ids: list[str], tmp_path: Path) -> None:
    page = tmp_path / "new" / "goodput.html"
    assert mldiag.lines("goodput", ids[0], "-o", "html", "--out", str(page)) == []
    links = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            links.extend(value for name, value in attrs if name in {"src", "href"} and tag != "a")

    Links().feed(page.read_text())
    assert links == []
    assert f"<title>Goodput: {mldiag.document('runs', 'get', ids[0])['displayName']}</title>" in page.read_text()


def test_errors_name_the_input_and_the_remedy(mldiag: CommandLine, ids: list[str]) -> None:
    assert "no run is given; pass RUN" in mldiag.failure("goodput", code=64)
    assert "'soon': not a length of time" in mldiag.failure("goodput", ids[0], "--window", "soon", code=64)
    assert "does not end after its start" in mldiag.failure("goodput", ids[0], "--exclude-interval", "9", "8", code=64)
    assert "no run in" in mldiag.failure("goodput", "nope")
    assert "cannot be written: Is a directory" in mldiag.failure("goodput", ids[0], "--out", "/")
    root = mldiag.run("goodput", mldiag.env["MLDIAG_STORAGE"])
    assert root.code == 1
    assert [shlex.split(line)[:2] for line in root.err.splitlines()[1:]] == [["mldiag", "goodput"]] * 2


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "trainer.jsonl", eventful().events)


@pytest.fixture(scope="module")
def now() -> str:
    return str(eventful().clock / 1e6)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the output of the command, run in this process."""
    program.main(["goodput", *arguments], standalone_mode=False)
    return capsys.readouterr().out


def reports(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[GoodputReport]:
    return [from_json(report) for report in json.loads(shown(capsys, *arguments, "-o", "json"))]


def test_options_reach_the_report(capsys: pytest.CaptureFixture[str], log: Path, now: str, tmp_path: Path) -> None:
    file = tmp_path / "exclude.json"
    begin = BEGIN // S
    entry = {"start_time_utc": str(begin), "end_time_utc": str(begin + 50)}
    file.write_text(json.dumps([entry]), encoding="utf-8-sig")
    (report,) = reports(
        capsys, str(log), "--now", now, "--window", "60", "--window", "5m", "--exclude", str(file), "--devices",
        "16", "--exclude-interval", str(begin + 40), str(begin + 70), "--created", str(begin - 90),
        "--ideal-step-time", "1.5",
    )  # fmt: skip
    assert [window.window_s for window in report.windows] == [60, 300]
    assert report.cumulative.excluded_s == 70
    assert report.devices == 16
    assert report.queueing is not None
    assert report.queueing.queued_s == 90
    assert report.steps.ideal_s == 1.5
    with pytest.raises(ConfigurationError, match=r"--exclude .*missing.json: cannot be read"):
        shown(capsys, str(log), "--exclude", str(tmp_path / "missing.json"))
    with pytest.raises(ConfigurationError, match="pass an earlier time"):
        shown(capsys, str(log), "--created", str(begin + 1))


def test_logs_of_several_jobs_are_compared(
    capsys: pytest.CaptureFixture[str], log: Path, now: str, tmp_path: Path
) -> None:
    both = (str(log), str(write_log(tmp_path / "short.jsonl", finished().events)), "--now", now)
    assert shown(capsys, *both).splitlines()[0].split() == ["trainer", "short"]
    assert [report.disruptions != () for report in reports(capsys, *both)] == [True, False]


def test_what_is_excluded_is_said(capsys: pytest.CaptureFixture[str], log: Path, now: str, tmp_path: Path) -> None:
    begin = BEGIN // S
    some = ("--exclude-interval", str(begin), str(begin + 120), "--now", now)
    for output in ("table", "html"):
        assert "2 min excluded; shares are of the remaining" in shown(capsys, str(log), *some, "-o", output)
    other = write_log(tmp_path / "short.jsonl", finished().events)
    (line,) = [line for line in shown(capsys, str(log), str(other), *some).splitlines() if "excluded" in line]
    assert line.split() == ["excluded", "2", "min", "2", "min"]
    assert "excluded" not in shown(capsys, str(log), str(other), "--now", now)


def test_a_page_is_titled_by_its_job(capsys: pytest.CaptureFixture[str], log: Path, now: str) -> None:
    text = shown(capsys, str(log), "--now", now, "-o", "html")
    assert "<title>Goodput: trainer</title>" in text
    assert '<h1>trainer <span class="soft">run 1</span></h1>' in text
    assert f'<span class="place">{log}</span>' in text


def test_a_page_has_what_an_encoding_lacks_as_references(
    log: Path, now: str, tmp_path: Path, mldiag: CommandLine
) -> None:
    named = tmp_path / "größe.jsonl"
    named.write_bytes(log.read_bytes())
    ascii_only = {"PYTHONIOENCODING": "ascii"}
    page = "\n".join(mldiag.lines("goodput", str(named), "--now", now, "-o", "html", env=ascii_only))
    assert "gr&#246;&#223;e" in page


def test_every_option_is_documented() -> None:
    options = {option for parameter in goodput.params for option in parameter.opts if option.startswith("--")}
    page = (Path(__file__).parents[2] / "docs/goodput.md").read_text(encoding="utf-8")
    assert len(options) > 10
    assert options - {"--output"} <= set(re.findall(r"`(--[a-z][a-z-]+)", page))
