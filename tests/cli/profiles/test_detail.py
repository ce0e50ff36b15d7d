"""Figures of real sessions of JAX."""

from __future__ import annotations

import json

import pytest
from mldiagnostics.layout import summary_key
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.sessions import read_summaries
from mldiagnostics_diagnosis.summary import Operation
from support.diagnosed_sessions import put_diagnosed_session
from support.programs.command_line import CommandLine
from support.programs.jax_programs import run_program

pytestmark = pytest.mark.peers

PROGRAM = """
for session, steps in (("few", 3), ("many", 6)):
    jax.profiler.start_trace(sys.argv[1] + "/" + session)
    for number in range(steps):
        with jax.profiler.StepTraceAnnotation("train", step_num=number):
            step()
    jax.profiler.stop_trace()
"""


@pytest.fixture(scope="module")
def mldiag(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """The command line beside two log directories of JAX."""
    folder = tmp_path_factory.mktemp("jax")
    ended = run_program(f"step()\n{PROGRAM}", folder)
    assert ended.returncode == 0, ended.log
    return CommandLine(folder)


def test_a_session_has_its_steps_and_operations(mldiag: CommandLine) -> None:
    summary = mldiag.document("profiles", "get", "few")["summary"]
    assert 1 <= summary["steps"] <= 3  # those that are not whole are left out
    assert 0 < summary["fastestStepSeconds"] <= summary["stepTimeSeconds"] <= summary["slowestStepSeconds"]
    assert sum(summary["phases"].values()) == pytest.approx(1)
    assert 0 < summary["coverage"] <= 1
    assert any(each["phase"] == "compute" for each in summary["operations"])
    assert all(each["secondsPerStep"] > 0 and each["hosts"] == 1 for each in summary["operations"])
    page = mldiag.lines("profiles", "get", "few", "--top", "1")
    assert any(line.startswith(f"steps       {summary['steps']}, median ") for line in page)
    assert any(line.startswith("verdict     ") for line in page)
    assert len(page) - page.index("") == 3  # a heading and one operation


def test_figures_that_two_commands_show_are_the_same(mldiag: CommandLine) -> None:
    summary, diagnosis = mldiag.document("profiles", "get", "many")["summary"], mldiag.document("diagnose", "many")
    assert (summary["steps"], summary["stepTimeSeconds"]) == (diagnosis["steps"], diagnosis["stepSeconds"])
    both = mldiag.document("profiles", "compare", "few", "many")
    change = mldiag.document("diagnose", "many", "--against", "few")
    assert both["comparison"] == change
    assert [each["summary"]["steps"] for each in both["sessions"]][1] == summary["steps"]


def test_two_sessions_stand_side_by_side(mldiag: CommandLine) -> None:
    document = mldiag.document("profiles", "compare", "few", "many")
    steps = [str(each["summary"]["steps"]) for each in document["sessions"]]
    changes = [abs(each["changeSeconds"]) for each in document["comparison"]["operations"]]
    assert changes == sorted(changes, reverse=True)
    assert [line.split() for line in mldiag.lines("profiles", "compare", "few", "many")][1] == ["steps", *steps]


def test_a_trace_that_is_not_one_is_named(mldiag: CommandLine) -> None:
    folder = mldiag.folder / "broken/plugins/profile/cut"
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(b"\xff" * 100)
    verdict = mldiag.lines("profiles", "get", "broken")[-1]
    assert verdict.startswith("verdict     Inconclusive: ")
    assert "host-0.xplane.pb: " in verdict
    (folder / "host-0.xplane.pb").unlink()
    (folder / "capture.json").write_text(json.dumps({"targets": []}))
    assert "cut: has no trace; choose another session" in mldiag.failure("profiles", "get", "broken")


def test_figures_are_read_and_nothing_is_written(mldiag: CommandLine) -> None:
    folder = mldiag.folder / "few"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    mldiag.lines("profiles", "get", "few")
    mldiag.lines("profiles", "compare", "few", "few")
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_all_operations_that_changed_are_shown(mldiag: CommandLine) -> None:
    store = open_store(str(mldiag.folder))
    for session in ("before", "after"):
        put_diagnosed_session(store, "wide", session, hosts=3, slow=1)
        for host, summary in enumerate(read_summaries(open_store(str(mldiag.folder / "wide")), session)):
            operations = tuple(
                Operation(name=f"{session}-{host}-{n}", phase="compute", seconds=0.001, count=1.0) for n in range(20)
            )
            content = summary.model_copy(update={"operations": operations}).encode()
            store.put(f"wide/{summary_key(session, summary.host)}", content, replace=True)
    for command in (
        ("profiles", "compare", "wide/before", "wide/after"),
        ("diagnose", "wide/after", "--against", "wide/before"),
    ):
        lines = mldiag.lines(*command, "--top", "50")
        assert len(lines) - lines.index("") == 2 + 50  # an empty line, a heading and 50 operations
