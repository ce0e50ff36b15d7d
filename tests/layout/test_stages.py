"""`make test` runs its stages side by side, in order, and reports each of them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.programs.processes import eventually
from support.suite.stage_process import FAILED_NOW, Result, Stage
from support.suite.stages import ready, run, summary
from support.time_limits import with_enough_time

ROOT = Path(__file__).parents[2]
DAEMON = f"""
import sys
from pathlib import Path
sys.path.append({str(ROOT / "e2e")!r})
from cluster.process import Daemon
daemon = Daemon("sleeper", run=Path(sys.argv[1]), logs=Path(sys.argv[1]))
daemon.start(["sleep", "60"])
for process in ("self", daemon.pid):
    if (share := Path(f"/proc/{{process}}/autogroup")).exists():
        print(share.read_text(), end="")
daemon.stop()
"""
PREPARATIONS = ["unit-tools", "tools", "last-tools", "environments", "parts", "later-images", "browser"]


def stage(name: str, script: str = "", **fields: Any) -> Stage:
    return Stage(name, f"stage {name}", ["sh", "-c", script], ROOT, "1 s", **fields)


def run_all(folder: Path, *stages: Stage, limit: int = 2) -> tuple[dict[str, Result], str]:
    """Run the stages; return their results and the output."""
    out = io.StringIO()
    outcomes = run(stages, folder, limit=limit, out=out)
    results = {name: outcome.result for name, outcome in outcomes.items()}
    return results, out.getvalue() + summary(stages, outcomes, folder)


def test_two_stages_run_side_by_side_and_each_output_is_shown_whole(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # a writer waits for a reader: neither ends without the other
    writer = stage("writer", f"echo first; echo word > '{pipe}'; echo second")
    results, output = run_all(tmp_path, writer, stage("reader", f"cat '{pipe}'"))
    assert set(results.values()) == {Result.PASSED}
    assert "first\nsecond\n==> stage writer: passed" in output
    assert "word\n==> stage reader: passed" in output


def test_a_stage_aside_leaves_the_processor_to_others_and_so_do_its_daemons(tmp_path: Path) -> None:
    program = tmp_path / "aside.py"
    program.write_text(DAEMON)
    command = f"nice; {sys.executable} '{program}' '{tmp_path}'"
    run_all(tmp_path, replace(stage("aside", command), niceness=3))
    niceness, *shares = (tmp_path / "aside.log").read_text().splitlines()
    assert niceness == str(min(os.nice(0) + 3, 19))
    if Path("/proc/self/autogroup").exists():
        names, values = zip(*(line.split(" nice ") for line in shares), strict=True)
        assert values == ("3", "3")
        assert len(set(names)) == 2


def test_a_failed_stage_is_reported_and_stops_only_those_that_need_it(tmp_path: Path) -> None:
    results, output = run_all(
        tmp_path,
        stage("tools", "echo no compiler >&2; exit 3", prepares=True),
        stage("environments", "echo hidden", prepares=True),
        stage("unit", "echo 'FAILED tests/test_x.py::test_x - assert 1 == 2'; exit 1"),
        stage("contract", "echo never", needs=("tools", "environments")),
        stage("cluster", "echo last", after=("unit", "contract")),
    )
    assert results == {
        "tools": Result.FAILED,
        "environments": Result.PASSED,
        "unit": Result.FAILED,
        "contract": Result.NOT_RUN,
        "cluster": Result.PASSED,
    }
    assert "no compiler" in output
    assert "hidden" not in output
    assert "never" not in output
    at_the_end = output.rpartition("==> stage cluster: passed")[2]
    assert "    failed: tests/test_x.py::test_x\n" in at_the_end
    assert "not run    0.0 min  stage contract" in at_the_end
    assert "==> stage tools: failures\nno compiler\n" in at_the_end
    assert at_the_end.endswith("--hypothesis-seed=0 'tests/test_x.py::test_x'")


def test_a_failed_test_is_named_while_its_stage_runs(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    class Opening(io.StringIO):
        def write(self, text: str) -> int:
            if "failed: test_x.py::test_x" in text:
                pipe.write_text("the stage may end\n")
            return super().write(text)

    failing = stage("unit", f"echo '{FAILED_NOW}test_x.py::test_x'; read line < '{pipe}'; echo end")
    out = Opening()
    run([failing], tmp_path, limit=1, out=out)
    assert out.getvalue().index("failed: test_x.py::test_x") < out.getvalue().index("end")


def test_an_order_holds_where_one_could_start_earlier(tmp_path: Path) -> None:
    file = tmp_path / "file"
    gate, unit = (
        stage("gate", f"echo gate >> '{file}'"),
        stage("unit", f"echo unit >> '{file}'", after=("gate", "absent")),
    )
    assert set(run_all(tmp_path, unit, gate)[0].values()) == {Result.PASSED}
    assert file.read_text() == "gate\nunit\n"


def test_an_interrupt_ends_the_stages_that_run(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    program = f"import sys; sys.path.insert(0, {str(ROOT / 'tests')!r})\nfrom pathlib import Path\n"
    program += "from support.suite.stage_process import Stage\nfrom support.suite.stages import run\n"
    program += f"sleeper = Stage('x', 'x', ['sh', '-c', 'exec sleep 600 > \"$0\"', {str(pipe)!r}], Path('/'), 'long')\n"
    program += f"run([sleeper], Path({str(tmp_path)!r}), limit=2)\n"
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True, stderr=subprocess.PIPE)
    with pipe.open("rb") as held_by_the_stage:  # opens when the stage runs, and ends with it
        os.killpg(process.pid, signal.SIGINT)
        assert held_by_the_stage.read() == b""
    _, errors = process.communicate()
    assert process.returncode
    assert b"KeyboardInterrupt" in errors


def test_a_stage_that_hangs_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    """Its output names where it hung, and the next stage runs."""
    place = 'File "<string>", line 3 in <module>'

    def hang(silence_s: int) -> str:
        """Return the output."""
        pipe = tmp_path / f"pipe-{silence_s:g}"
        os.mkfifo(pipe)
        held_by_what_it_started = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        program = f"import faulthandler, os\nfaulthandler.enable()\nos.system('exec sleep 600 > \"{pipe}\"')\n"
        stages = [
            Stage("unit", "unit", [sys.executable, "-c", program], ROOT, "long"),
            Stage("contract", "contract", ["true"], ROOT, "short", after=("unit",)),
        ]
        out = io.StringIO()
        try:
            ended = run(stages, tmp_path, limit=1, out=out, silence_s=silence_s)
            eventually(lambda: has_no_writer(held_by_what_it_started))
        finally:
            os.close(held_by_what_it_started)
        assert [outcome.result for outcome in ended.values()] == [Result.FAILED, Result.PASSED]
        assert f"unit: no output for {silence_s:g} s; ended" in out.getvalue()
        return out.getvalue()

    assert place in with_enough_time(hang, lambda output: place in output)  # a slow start of Python is silent too


def has_no_writer(pipe: int) -> bool:
    """Return whether no process has an empty pipe open for writing."""
    try:
        return os.read(pipe, 1) == b""
    except BlockingIOError:
        return False


@given(st.data())
def test_stages_start_only_in_order_and_within_the_limit(data: st.DataObject) -> None:
    names = [f"s{number}" for number in range(data.draw(st.integers(1, 6)))]
    stages = [
        stage(
            name,
            after=tuple(data.draw(st.lists(st.sampled_from([*names[:index], "absent"]), max_size=3))),
            prepares=data.draw(st.booleans()),
        )
        for index, name in enumerate(names)
    ]
    limit = data.draw(st.integers(1, 3))
    by_name = {each.name: each for each in stages}
    results: dict[str, Result] = {}
    running: set[str] = set()
    while len(results) < len(stages):
        starting = ready(stages, results, running, limit)
        assert running or starting, "a stage is left waiting"
        running |= {each.name for each in starting}
        assert sum(not by_name[name].prepares for name in running) <= limit
        assert all(name in results or name == "absent" for each in starting for name in each.after)
        ended = data.draw(st.sampled_from(sorted(running)))
        running.remove(ended)
        results[ended] = Result.PASSED


@pytest.mark.parametrize(("script", "status"), [("exit 0", 0), ("exit 3", 1)])
def test_the_exit_status_says_whether_every_stage_passed(tmp_path: Path, script: str, status: int) -> None:
    program = (
        "import pathlib, sys, run_all\n"
        "from support.suite.stage_process import Stage\n"
        "run_all.LOGS = pathlib.Path(sys.argv[1])\n"
        "chosen = [Stage('first', 'first', ['true'], run_all.ROOT, '1 s'),"
        " Stage('last', 'last', ['sh', '-c', sys.argv[2]], run_all.ROOT, '1 s')]\n"
        "run_all.chosen_stages = lambda names: chosen\n"
        "sys.exit(run_all.main([]))"
    )
    command = [sys.executable, "-c", program, str(tmp_path), script]
    done = subprocess.run(command, cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (status, ""), done.stdout


@pytest.mark.parametrize(
    ("names", "stages"),
    [
        ([], [*PREPARATIONS, "gate", "unit", "contract", "cluster"]),
        (["unit"], ["unit-tools", "browser", "unit"]),
        (["apiserver"], ["unit-tools", "tools", "apiserver"]),
        (["contract"], ["unit-tools", "tools", "environments", "contract"]),
        (["cluster", "gate"], ["gate", "cluster"]),
    ],
)
def test_stages_are_chosen_by_name(names: list[str], stages: list[str]) -> None:
    program = "import sys, run_all; print(*[stage.name for stage in run_all.chosen_stages(sys.argv[1:])])"
    done = subprocess.run(
        [sys.executable, "-c", program, *names], cwd=ROOT / "tests", capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == stages
