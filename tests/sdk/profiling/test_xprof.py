"""Profiles that real JAX programs ask for, in all the ways there are, read by XProf."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import grpc
import pytest
from mldiagnostics.capture import CaptureReport, Options, State, Target, capture
from mldiagnostics.capture.messages import PROFILE, profile_request
from mldiagnostics.layout import is_trace
from mldiagnostics.profiling.xprof import Xprof, xprof
from mldiagnostics.store import open_store
from support.jax_programs import end_of, free_port, run_program, start_program
from support.xprof_reader import names_in

if TYPE_CHECKING:
    from support.emulator_faults import FaultyProxy
    from support.jax_programs import Ended

pytestmark = pytest.mark.peers


def traces(folder: Path | str) -> dict[str, list[str]]:
    """Return the sessions below a folder, with the files of each."""
    found: dict[str, list[str]] = {}
    for file in sorted(Path(folder).rglob("plugins/profile/*/*.xplane.pb")):
        found.setdefault(file.parent.name, []).append(str(file))
    return found


def stored(ended: Ended, session: str) -> set[str]:
    """Return the names in the only file of a session."""
    assert ended.returncode == 0, ended.log
    assert ended.states(session) == ["recording", "stored"], ended.log
    (file,) = traces(ended.storage)[session]
    return names_in(file)


def test_an_object_a_block_and_a_decorator_each_make_a_session_that_xprof_reads(tmp_path: Path) -> None:
    ended = run_program(
        """
        run = begin()
        profile = xprof()
        profile.start(); step("in object"); profile.stop()
        settle()
        step("in nothing")
        with xprof():
            step("in block")
        settle()
        with xprof(session_id="mine"):
            step("in named block")
        settle()
        profile.start(session_id="my own"); step("in named object"); profile.stop()
        settle()

        @xprof()
        def train(depth):
            '''Train.'''
            step(f"in call {depth}")
            return depth and train(depth - 1)

        tell(name=train.__name__, doc=train.__doc__, result=train(2))
        settle()

        @xprof
        def bare():
            step("in bare")

        bare()
        run.close()
        tell(problems=complaints.counts())
        """,
        tmp_path,
    )
    assert ended.told == {"name": "train", "doc": "Train.", "result": 0, "problems": {}}
    expected = {
        "a0-n1": {"in object"},
        "a0-n2": {"in block"},
        "mine": {"in named block"},
        "a0-n5": {"in call 2", "in call 1", "in call 0"},
        "a0-n6": {"in bare"},
    }
    named = next(name for name in traces(tmp_path) if name.startswith("my-own-"))
    expected[named] = {"in named object"}
    assert set(traces(tmp_path)) == set(expected)
    for session, steps in expected.items():
        assert {name for name in stored(ended, session) if name.startswith("in ")} == steps


def test_steps_drive_windows_of_their_own(tmp_path: Path) -> None:
    ended = run_program(
        """
        with begin() as run:
            xprof(steps=(3, 5))
            xprof(every_n_steps=10)
            for number in range(25):
                run.step(number)
                if number in (5, 11, 21):
                    settle()  # a recording may end a moment after it is stopped
                step(f"step {number}.")
        tell(problems=complaints.counts())
        """,
        tmp_path,
    )
    assert ended.told == {"problems": {}}
    recorded = {
        session: {name for name in stored(ended, session) if name.startswith("step ")} for session in traces(tmp_path)
    }
    assert recorded == {
        "a0-s3": {"step 3.", "step 4."},
        "a0-s10": {"step 10."},
        "a0-s20": {"step 20."},
    }
    assert {record.step for record in ended.sessions()} == {3, 10, 20}


def test_whatever_the_order_of_calls_training_goes_on_and_is_told_once(tmp_path: Path) -> None:
    ended = run_program(
        """
        xprof().start()                      # before a run
        xprof(steps=(1, 2))
        run = begin()
        profile = xprof(process_index_list="none", steps=(5, 2))
        profile.stop()                       # without start
        profile.start(); profile.start()     # twice
        step("first")
        profile.stop(); profile.stop()
        other = xprof(process_index_list=[7])
        other.start(); step("elsewhere")     # another rank's
        xprof(run, session_id=3).start(12)   # numbers, and nobody stops it
        run.close(); run.close()
        profile.start(); profile.stop()      # after the end
        tell(problems=complaints.counts())
        """,
        tmp_path,
    )
    assert ended.told["problems"] == {
        "profile-without-run": 3,
        "profile-ranks": 1,
        "profile-steps": 1,
        "profile-not-running": 3,
        "profile-started-twice": 1,
    }
    assert "first" in stored(ended, "a0-n1")
    stored(ended, "12")
    assert set(traces(tmp_path)) == {"a0-n1", "12"}


def test_an_exception_passes_through_a_block_and_its_trace_is_kept(tmp_path: Path) -> None:
    ended = run_program(
        """
        begin()
        with xprof():
            step("before the fault")
            raise ValueError("the user's own")
        """,
        tmp_path,
    )
    assert ended.returncode == 1
    assert "ValueError: the user's own" in ended.log
    assert ended.phase() == "Failed"
    assert ended.states("a0-n1") == ["recording", "stored"]
    assert "before the fault" in names_in(traces(tmp_path)["a0-n1"][0])


@pytest.mark.parametrize("last", ["", "sys.exit(3)", "raise KeyError", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_a_profile_that_nobody_stops_is_kept_when_the_process_ends(tmp_path: Path, last: str) -> None:
    ended = run_program(f"import os, signal; begin(); xprof().start(); step('the last'); {last}", tmp_path)
    assert ended.states("a0-n1") == ["recording", "stored"], ended.log
    assert "the last" in names_in(traces(tmp_path)["a0-n1"][0])


def test_the_next_incarnation_leaves_the_files_of_the_last_one_alone(tmp_path: Path) -> None:
    for number in (1, 2):
        assert (
            run_program(f"begin(); x = xprof(); x.start(); step('life {number}'); x.stop()", tmp_path).returncode == 0
        )
    assert set(traces(tmp_path)) == {"a0-n1", "a0-n1-2"}
    assert "life 1" in names_in(traces(tmp_path)["a0-n1"][0])
    assert "life 2" in names_in(traces(tmp_path)["a0-n1-2"][0])


TWO_PROCESSES = """
import os
jax.distributed.initialize(os.environ["COORDINATOR"], 2, int(os.environ["RANK"]))
with begin() as run:
    with xprof():
        step("on both")
    settle()
    with xprof(process_index_list=[1]):
        step("on one")
    settle()
    with xprof():
        step("on both again")
    tell(rank=run.origin.rank, problems=complaints.counts())
"""


def test_the_processes_of_a_job_end_in_one_session_without_a_word_between_them(tmp_path: Path) -> None:
    coordinator = f"127.0.0.1:{free_port()}"
    processes = [
        start_program(TWO_PROCESSES, tmp_path, COORDINATOR=coordinator, RANK=str(rank), WORLD_SIZE="2")
        for rank in range(2)
    ]
    for rank, process in enumerate(processes):
        ended = end_of(process, tmp_path)
        assert ended.told == {"rank": rank, "problems": {}}, ended.log
    found = traces(tmp_path)
    assert {session: len(files) for session, files in found.items()} == {"a0-n1": 2, "a0-n2": 1, "a0-n3": 2}
    for session, name in (("a0-n1", "on both"), ("a0-n2", "on one"), ("a0-n3", "on both again")):
        assert all(name in names_in(file) for file in found[session])


OBEYS = """
from mldiagnostics.profiling.on_demand import start_on_demand_xprof

run = begin()
start_on_demand_xprof(int(sys.stdin.readline()))
profile = xprof()
for word in sys.stdin:
    if word.strip() == "start":
        settle()
    getattr(profile, word.strip())()
    step("in " + word.strip())
    tell(problems=complaints.counts())
"""


class Obedient:
    """A program that starts and stops profiles as it is told, and listens for captures on `address`."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        assert process.stdin
        assert process.stdout
        self._orders, self._answers = process.stdin, process.stdout
        self.address = f"127.0.0.1:{port}"
        self._order(str(port))

    def do(self, word: str) -> dict[str, int]:
        """Let it call a method, and train a step; returns the problems so far."""
        self._order(word)
        problems: dict[str, int] = json.loads(self._answers.readline())["problems"]
        return problems

    def _order(self, line: str) -> None:
        self._orders.write(f"{line}\n")
        self._orders.flush()


def until_a_capture_holds(program: Obedient) -> None:
    """Return once the program cannot start a profile, since it is being captured."""
    until = time.monotonic() + 60
    while "profile-not-started" not in program.do("start"):
        program.do("stop")
        assert time.monotonic() < until, "nobody captures the program"


def refusal_of_a_capture(program: Obedient) -> str:
    request = profile_request(Target("", 0, "h"), Options("s", 1, 1), root="", answer_with_trace=True, start_ns=None)
    with grpc.insecure_channel(program.address) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(PROFILE)(request, timeout=60)
    return str(refused.value)


def keep_training(program: Obedient, coming: Future[CaptureReport]) -> None:
    while not coming.done():
        program.do("__str__")


def test_profiles_and_captures_take_turns_and_leave_nothing_broken(tmp_path: Path) -> None:
    port = free_port()
    with start_program(OBEYS, tmp_path / "runs") as process, ThreadPoolExecutor(1) as thread:
        program = Obedient(process, port)
        program.do("start")
        program.do("stop")
        ask = partial(capture, [program.address], storage=str(tmp_path / "captures"))

        coming = thread.submit(ask, duration_ms=3000)
        until_a_capture_holds(program)
        keep_training(program, coming)
        (outcome,) = coming.result(120).outcomes
        assert outcome.state is State.CAPTURED, outcome.message

        problems = program.do("start")
        assert "profiling session active" in refusal_of_a_capture(program)
        assert program.do("stop") == problems, "a profile after a capture fails"

        coming = thread.submit(ask, duration_ms=500)
        keep_training(program, coming)
        assert coming.result().outcomes[0].state is State.CAPTURED
        ended = end_of(process, tmp_path / "runs")
    assert ended.returncode == 0, ended.log
    assert "is recording this process" in ended.log or "has the process" in ended.log
    last = max(traces(tmp_path / "runs"), key=lambda session: int(session.removeprefix("a0-n")))
    assert "in start" in stored(ended, last)


def test_a_program_without_a_framework_is_told_what_is_missing(tmp_path: Path) -> None:
    text = """
        import sys
        from mldiagnostics import complaints
        from mldiagnostics.profiling.xprof import xprof
        from mldiagnostics.run import machinelearning_run
        with machinelearning_run("demo", storage=sys.argv[1]), xprof():
            print(complaints.counts())
        """
    command = [sys.executable, "-c", textwrap.dedent(text), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "{'profile-not-started': 1}\n"
    assert "import it before profiling" in done.stderr


def test_a_run_in_a_bucket_keeps_its_profiles_there(tmp_path: Path, gcs_bucket: str) -> None:
    storage = f"gs://{gcs_bucket}/runs"
    ended = run_program("begin(); x = xprof(); x.start(); step('in bucket'); x.stop()", storage)
    assert ended.returncode == 0, ended.log
    assert ended.states("a0-n1") == ["recording", "stored"], ended.log
    store = open_store(storage)
    (key,) = [entry.key for entry in store.list() if is_trace(entry.key)]
    trace = tmp_path / "host.xplane.pb"
    with store.open(key) as file:
        trace.write_bytes(file.read())
    assert "in bucket" in names_in(str(trace))


def test_a_store_that_refuses_costs_the_profile_and_nothing_else(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    ended = run_program(
        """
        run = begin()
        profile = xprof()
        profile.start(); step(); profile.stop()
        step("training goes on")
        run.close()
        tell(trained=True)
        """,
        in_the_way,
    )
    assert ended.told == {"trained": True}
    assert ended.returncode == 0, ended.log
    assert "the profile a0-n1 is lost" in ended.log
    assert str(in_the_way) in ended.log


def test_a_store_that_hangs_holds_neither_training_nor_memory(gcs_faults: FaultyProxy, gcs_bucket: str) -> None:
    gcs_faults.otherwise = "hang"
    with start_program(
        """
        run = begin()
        profile = xprof()
        for number in range(5):
            profile.start(); step(); profile.stop()
        print("END", json.dumps(complaints.counts()), file=sys.stderr, flush=True)
        """,
        f"gs://{gcs_bucket}/runs",
    ) as process:
        assert process.stderr
        line = next(line for line in process.stderr if line.startswith("END"))
        process.kill()
    assert json.loads(line.removeprefix("END"))["profile-not-started"] == 3


def test_xprof_gives_the_class_that_it_documents() -> None:
    assert isinstance(xprof(), Xprof)


def test_without_parentheses_it_decorates_whatever_can_be_called_and_takes_nothing_else_for_a_run(caplog: Any) -> None:
    assert xprof(partial(pow, 2))(3) == 8
    with xprof(run=cast("Any", 3)):
        assert "run=3 is no run" in caplog.text
