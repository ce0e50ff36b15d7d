"""Summaries of real sessions of JAX by the real XProf."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.command_line import CommandLine
from support.jax_programs import run_program

if TYPE_CHECKING:
    from pathlib import Path

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
    before = files_of(mldiag)
    document = mldiag.document("profiles", "get", "few")
    summary = document["summary"]
    assert summary["device"] == "CPU"
    assert 1 <= summary["steps"] <= 3  # XProf leaves out those that are not whole
    assert 0 < summary["fastestStepSeconds"] <= summary["stepTimeSeconds"] <= summary["slowestStepSeconds"]
    assert sum(summary["stepParts"].values()) == pytest.approx(1, abs=0.02)
    assert summary["inputShare"] == 0
    assert sum(each["share"] for each in summary["operations"]) == pytest.approx(1)
    assert {each["occurrences"] for each in summary["operations"]} == {3}
    page = mldiag.lines("profiles", "get", "few", "--top", "1")
    assert any(line.startswith(f"steps       {summary['steps']}, mean ") for line in page)
    assert sum(operation["name"] in line for line in page for operation in summary["operations"]) == 1
    assert files_of(mldiag) == before


def test_two_sessions_stand_side_by_side(mldiag: CommandLine) -> None:
    document = mldiag.document("profiles", "compare", "few", "many")
    steps = [str(each["summary"]["steps"]) for each in document["sessions"]]
    changes = [
        abs(after - before) for _, (before, after) in ((o["name"], o["seconds"]) for o in document["operations"])
    ]
    assert changes == sorted(changes, reverse=True)
    assert [line.split() for line in mldiag.lines("profiles", "compare", "few", "many")][1] == ["steps", *steps]


def test_a_trace_that_xprof_rejects_is_one_message(mldiag: CommandLine) -> None:
    folder = mldiag.folder / "broken/plugins/profile/cut"
    folder.mkdir(parents=True)
    (folder / "host-0.xplane.pb").write_bytes(b"\xff" * 100)
    message = mldiag.failure("profiles", "get", "broken")
    assert "host-0.xplane.pb: is corrupt: " in message
    (folder / "host-0.xplane.pb").unlink()
    (folder / "capture.json").write_text(json.dumps({"targets": []}))
    assert "cut: has no trace; choose another session" in mldiag.failure("profiles", "get", "broken")


def files_of(mldiag: CommandLine) -> list[Path]:
    return sorted(mldiag.folder.rglob("*"))
