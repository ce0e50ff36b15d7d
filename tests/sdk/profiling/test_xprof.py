"""Profiles of real JAX programs by all forms of `xprof`, read by XProf."""

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
from cluster.ports import free_port
from mldiagnostics.capture import CaptureReport, Options, Target, TargetState, capture
from mldiagnostics.capture.messages import PROFILE, profile_request
from mldiagnostics.layout import is_trace
from mldiagnostics.profiling.xprof import Xprof, xprof
from mldiagnostics.store import open_store
from support.programs.jax_programs import end_of, run_program, start_program
from support.programs.xprof_reader import names_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.programs.jax_programs import Ended
    from support.servers.emulator_faults import FaultyProxy

pytestmark = pytest.mark.peers


def traces(folder: Path | str) -> dict[str, list[str]]:
    """Return the sessions below a folder, with the files of each."""
    files_by_session: dict[str, list[str]] = {}
    for file in sorted(Path(folder).rglob("plugins/profile/*/*.xplane.pb")):
        files_by_session.setdefault(file.parent.name, []).append(str(file))
    return files_by_session


def stored(ended: Ended, session: str) -> set[str]:
    """Return the names in the only file of a session."""
    assert ended.returncode == 0, ended.log
    assert ended.states(session) == ["recording", "stored"], ended.log
    (file,) = traces(ended.storage)[session]
    return names_in(file)


def test_object_block_and_decorator_each_make_a_session_that_xprof_reads(tmp_path: Path) -> None:
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

        report(name=train.__name__, doc=train.__doc__, result=train(2))
        settle()

        @xprof
        def bare():
            step("in bare")

        bare()
        run.close()
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"name": "train", "doc": "Train.", "result": 0, "problems": {}}
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


def test_steps_start_and_stop_profiles(tmp_path: Path) -> None:
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
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"problems": {}}
    recorded = {
        session: {name for name in stored(ended, session) if name.startswith("step ")} for session in traces(tmp_path)
    }
    assert recorded == {
        "a0-s3": {"step 3.", "step 4."},
        "a0-s10": {"step 10."},
        "a0-s20": {"step 20."},
    }
    assert {record.step for record in ended.sessions()} == {3, 10, 20}


def test_calls_in_any_order_are_logged_once_and_training_goes_on(tmp_path: Path) -> None:
    ended = run_program(
        """
        xprof().start()                      # before a run
        xprof(steps=(1, 2))
        run = begin()
        profile = xprof(steps=(5, 2))
        xprof(process_index_list="none").start()
        profile.stop()                       # without start
        profile.start(); profile.start()     # twice
        step("first")
        profile.stop(); profile.stop()
        other = xprof(process_index_list=[7])
        other.start(); step("elsewhere")     # another rank's
        settle()
        xprof(run, session_id=3).start(12)   # numbers; not stopped
        run.close(); run.close()
        profile.start(); profile.stop()      # after the end
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported["problems"] == {
        "profile-without-run": 3,
        "profile-ranks": 1,
        "profile-steps": 1,
        "profile-not-running": 2,
        "profile-started-twice": 1,
    }
    assert "first" in stored(ended, "a0-n2")
    stored(ended, "12")
    assert set(traces(tmp_path)) == {"a0-n2", "12"}


def test_the_trace_of_a_block_with_an_exception_is_stored(tmp_path: Path) -> None:
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
def test_a_running_profile_is_stored_when_the_process_ends(tmp_path: Path, last: str) -> None:
    ended = run_program(f"import os, signal; begin(); xprof().start(); step('the last'); {last}", tmp_path)
    assert ended.states("a0-n1") == ["recording", "stored"], ended.log
    assert "the last" in names_in(traces(tmp_path)["a0-n1"][0])


def test_the_next_incarnation_does_not_overwrite_files(tmp_path: Path) -> None:
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
    report(rank=run.origin.rank, problems=diagnostics.counts())
"""


def test_the_processes_of_a_job_write_to_the_same_sessions(tmp_path: Path) -> None:
    coordinator = f"127.0.0.1:{free_port()}"
    processes = [
        start_program(TWO_PROCESSES, tmp_path, COORDINATOR=coordinator, RANK=str(rank), WORLD_SIZE="2")
        for rank in range(2)
    ]
    for rank, process in enumerate(processes):
        ended = end_of(process, tmp_path)
        assert ended.reported == {"rank": rank, "problems": {}}, ended.log
    files_by_session = traces(tmp_path)
    assert {session: len(files) for session, files in files_by_session.items()} == {"a0-n1": 2, "a0-n2": 1, "a0-n3": 2}
    for session, name in (("a0-n1", "on both"), ("a0-n2", "on one"), ("a0-n3", "on both again")):
        assert all(name in names_in(file) for file in files_by_session[session])


CALLS_METHODS = """
from mldiagnostics.profiling.on_demand import start_on_demand_xprof

run = begin()
start_on_demand_xprof(int(sys.stdin.readline()))
profile = xprof()
for word in sys.stdin:
    if word.strip() == "start":
        settle()
    getattr(profile, word.strip())()
    step("in " + word.strip())
    report(problems=diagnostics.counts())
"""


class ControlledProgram:
    """A program that calls methods of xprof on request and serves captures on `address`."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        assert process.stdin
        assert process.stdout
        self._input, self._output = process.stdin, process.stdout
        self.address = f"127.0.0.1:{port}"
        self._send(str(port))

    def call(self, word: str) -> dict[str, int]:
        """Call a method, train a step and return the problems so far."""
        self._send(word)
        problems: dict[str, int] = json.loads(self._output.readline())["problems"]
        return problems

    def _send(self, line: str) -> None:
        self._input.write(f"{line}\n")
        self._input.flush()


def assert_captured(pending: Future[CaptureReport]) -> None:
    """Wait for a capture, which must succeed."""
    (outcome,) = pending.result(120).outcomes
    assert outcome.state is TargetState.CAPTURED, outcome.message


def capture_meanwhile(program: ControlledProgram, begin: Callable[[], Future[CaptureReport]]) -> Future[CaptureReport]:
    """Return a capture that keeps the program from starting a profile.

    A capture may end before the program tries; another one begins then.
    """
    until = time.monotonic() + 60
    pending = begin()
    while "profile-busy" not in program.call("start"):
        program.call("stop")
        assert time.monotonic() < until, "the program is not captured"
        if pending.done():
            assert_captured(pending)
            pending = begin()
    return pending


def refusal_of_a_capture(program: ControlledProgram) -> str:
    request = profile_request(Target("", 0, "h"), Options("s", 1, 1), root="", return_trace=True, start_ns=None)
    with grpc.insecure_channel(program.address) as channel, pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary(PROFILE)(request, timeout=60)
    return str(refused.value)


def keep_training(program: ControlledProgram, pending: Future[CaptureReport]) -> None:
    while not pending.done():
        program.call("__str__")


def test_profiles_and_captures_can_alternate(tmp_path: Path) -> None:
    port = free_port()
    with start_program(CALLS_METHODS, tmp_path / "runs") as process, ThreadPoolExecutor(1) as thread:
        program = ControlledProgram(process, port)
        program.call("start")
        program.call("stop")
        ask = partial(capture, [program.address], storage=str(tmp_path / "captures"))

        pending = capture_meanwhile(program, lambda: thread.submit(ask, duration_ms=3000))
        keep_training(program, pending)
        assert_captured(pending)

        problems = program.call("start")
        assert "profiling session active" in refusal_of_a_capture(program)
        assert program.call("stop") == problems, "a profile after a capture fails"

        pending = thread.submit(ask, duration_ms=500)
        keep_training(program, pending)
        assert_captured(pending)
        ended = end_of(process, tmp_path / "runs")
    assert ended.returncode == 0, ended.log
    assert "profiles of one process cannot overlap" in ended.log
    last = max(traces(tmp_path / "runs"), key=lambda session: int(session.removeprefix("a0-n")))
    assert "in start" in stored(ended, last)


def test_a_program_without_a_framework_logs_a_warning(tmp_path: Path) -> None:
    text = """
        import sys
        from mldiagnostics import diagnostics
        from mldiagnostics.profiling.xprof import xprof
        from mldiagnostics.run import machinelearning_run
        with machinelearning_run("demo", storage=sys.argv[1]), xprof():
            print(diagnostics.counts())
        """
    command = [sys.executable, "-c", textwrap.dedent(text), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "{'profile-not-started': 1}\n"
    assert "import one before profiling" in done.stderr


def test_a_run_in_a_bucket_stores_its_profiles_there(tmp_path: Path, bucket_url: str) -> None:
    ended = run_program("begin(); x = xprof(); x.start(); step('in bucket'); x.stop()", bucket_url)
    assert ended.returncode == 0, ended.log
    assert ended.states("a0-n1") == ["recording", "stored"], ended.log
    store = open_store(bucket_url)
    (key,) = [entry.key for entry in store.list() if is_trace(entry.key)]
    trace = tmp_path / "host.xplane.pb"
    with store.open(key) as file:
        trace.write_bytes(file.read())
    assert "in bucket" in names_in(str(trace))


def test_the_profile_is_spooled_if_the_store_fails(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.touch()
    ended = run_program(
        """
        run = begin()
        profile = xprof()
        profile.start(); step(); profile.stop()
        step("training goes on")
        run.close()
        report(trained=True)
        """,
        in_the_way,
        MLDIAG_SPOOL=str(tmp_path / "spool"),
    )
    assert ended.reported == {"trained": True}
    assert ended.returncode == 0, ended.log
    assert f"storage '{in_the_way}': cannot store files now" in ended.log
    (trace,) = traces(tmp_path / "spool")["a0-n1"]
    assert "train_step" in names_in(trace)


@pytest.mark.parametrize(("limit", "refused"), [("", 0), ("session._backlog = Backlog(5000)", 4)])
def test_a_hanging_store_neither_blocks_training_nor_exceeds_the_memory_limit(
    gcs_faults: FaultyProxy, gcs_bucket: str, limit: str, refused: int
) -> None:
    gcs_faults.otherwise = "hang"
    with start_program(
        f"""
        from mldiagnostics.profiling.backlog import Backlog
        {limit}
        run = begin()
        profile = xprof()
        for number in range(5):
            profile.start(); step(); profile.stop()
            while not session._backlog.waiting_bytes:
                time.sleep(0.001)
        print("END", json.dumps(diagnostics.counts()), file=sys.stderr, flush=True)
        """,
        f"gs://{gcs_bucket}/runs",
    ) as process:
        assert process.stderr
        log = []
        for line in process.stderr:
            log.append(line)
            if line.startswith("END"):
                break
        process.kill()
    problems = json.loads(log[-1].removeprefix("END"))
    assert problems.get("profile-not-started", 0) == refused
    assert ("of earlier profiles wait to be stored in gs://" in "".join(log)) == bool(refused)
    assert "profile-not-running" not in problems


SLOWEST_START = """
from mldiagnostics.profiling.xprof import Xprof
slowest = 0.0
real = Xprof._start

def timed(*args, **more):
    global slowest
    before = time.perf_counter()
    try:
        return real(*args, **more)
    finally:
        slowest = max(slowest, time.perf_counter() - before)

Xprof._start = timed
"""
"""Measures how long `xprof.start` blocks the training thread."""


def run_without_pauses(text: str, folder: Path, *, limit_s: float) -> Ended:
    """Run a program up to three times, until its slowest start took less than `limit_s`."""
    for attempt in range(2):
        ended = run_program(text, folder / str(attempt))
        if ended.reported.get("slowest", 0.0) < limit_s:
            return ended
    return run_program(text, folder / "last")


OVERLAPS = {
    "decorated": """
        @xprof()
        def inner():
            step("in inner")
        @xprof()
        def outer():
            inner(); step("in outer")
        outer()
        """,
    "steps": """
        xprof(steps=(9, 13))
        xprof(every_n_steps=10)
        for number in range(14):
            run.step(number); step("in outer")
        """,
    "blocks": """
        with xprof():
            p = xprof(); p.start(); step("in inner"); p.stop()
            step("in outer")
        """,
    "blocks of one object": """
        with (x := xprof()):
            with xprof(session_id="mine"):
                step("in outer")
        """,
}


@pytest.mark.parametrize("how", OVERLAPS)
def test_a_nested_profile_is_rejected_at_once_and_the_outer_one_kept(tmp_path: Path, how: str) -> None:
    text = f"{SLOWEST_START}\nrun = begin()\nstep()\n{textwrap.dedent(OVERLAPS[how])}"
    ended = run_without_pauses(
        f"{text}\nrun.close()\nreport(slowest=slowest, problems=diagnostics.counts())", tmp_path, limit_s=5
    )
    assert ended.reported["problems"] == {"profile-busy": 1}, ended.log
    assert "already profiling: profile a0-" in ended.log
    assert ended.reported["slowest"] < 5  # it was 10 s
    (session,) = traces(ended.storage)
    assert session in {"a0-n1", "a0-s9"}
    assert "in outer" in stored(ended, session)


def test_consecutive_profiles_are_all_stored(tmp_path: Path) -> None:
    ended = run_program(
        """
        session._HANDOVER_S = 60  # on a busy machine a trace is not collected within 20 ms
        run = begin()
        profile = xprof()
        for number in range(10):
            profile.start(); step(f"in object {number}."); profile.stop()
            with xprof():
                step(f"in block {number}.")
        @xprof()
        def train(number):
            step(f"in call {number}.")
        for number in range(10):
            train(number)
        run.close()
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"problems": {}}, ended.log
    names_by_session = [
        {name for name in stored(ended, session) if name.startswith("in ")} for session in traces(tmp_path)
    ]
    expected = {f"in {how} {number}." for how in ("object", "block", "call") for number in range(10)}
    assert len(names_by_session) == 30
    assert set().union(*names_by_session) == expected


HELD_COLLECTION = """
import threading
from dataclasses import replace

class HeldSession:
    def __init__(self, session):
        self.session, self.released = session, threading.Event()

    def stop(self):
        self.released.wait(60)
        return self.session.stop()

run = begin()
profile = xprof()
profile.start(); step()
recording = profile._active._recording
held = HeldSession(recording.session)
profile._active._recording = replace(recording, session=held)
profile.stop()
"""
"""Stops a profile whose trace is collected once `held.released` is set."""


def test_a_queued_profile_starts_once_the_previous_trace_is_collected(tmp_path: Path) -> None:
    ended = run_without_pauses(
        f"""
        {textwrap.indent(SLOWEST_START + HELD_COLLECTION, " " * 8).strip()}
        profile.start()
        late = not profile._active._recording
        slowest_start = slowest
        nested = xprof(); nested.start(); nested.stop()
        held.released.set()
        while not profile._active._recording:
            step("not recorded")
        step("recorded")
        profile.stop()
        run.close()
        report(late=late, slowest=slowest_start, problems=diagnostics.counts())
        """,
        tmp_path,
        limit_s=0.5,
    )
    assert ended.reported["late"]
    assert ended.reported["problems"] == {"profile-busy": 1}, ended.log
    assert ended.reported["slowest"] < 0.5
    assert "recorded" in stored(ended, "a0-n2")
    assert set(traces(ended.storage)) == {"a0-n1", "a0-n2"}


def test_a_profile_stopped_before_its_turn_is_logged_as_lost(tmp_path: Path) -> None:
    ended = run_program(
        f"""
        {textwrap.indent(HELD_COLLECTION, " " * 8).strip()}
        with xprof():
            step("too early")
        with xprof():
            held.released.set()
            while len(session._unstored) > 1:
                step("in time")
            while session._unstored and not next(iter(session._unstored))._recording:
                step("in time")
            step("in time")
        run.close()
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported["problems"] == {"profile-lost": 1}, ended.log
    assert "profile a0-n2: lost, it was stopped before the trace of the previous profile" in ended.log
    assert ended.states("a0-n2") == ["failed"]
    assert "in time" in stored(ended, "a0-n3")


def test_a_forked_child_does_not_wait_for_its_parents_profile(tmp_path: Path) -> None:
    ended = run_program(
        """
        import os
        session._STOP_TIMEOUT_S = 60
        run = begin()
        profile = xprof()
        profile.start(); step("in parent")
        child = os.fork()
        if child == 0:
            before = time.perf_counter()
            profile.stop()
            os._exit(0 if time.perf_counter() - before < 30 and not session._unstored else 1)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        profile.stop()
        run.close()
        report(status=status)
        """,
        tmp_path,
    )
    assert ended.reported == {"status": 0}, ended.log
    assert "in parent" in stored(ended, "a0-n1")


ON_RANK_0_ONLY = """
run = begin()
profile = xprof(process_index_list=[0])
profile.start(); step(); profile.stop()
settle()
with xprof(process_index_list=[0]):
    step()
settle()

@xprof(process_index_list=[0])
def train(depth):
    step()
    return depth and train(depth - 1)

train(2)
settle()
with xprof(session_id=None):
    step()
profile.stop()
run.close()
report(problems=diagnostics.counts())
"""


@pytest.mark.parametrize(("rank", "sessions"), [("0", {"a0-n1", "a0-n2", "a0-n3", "a0-n4"}), ("1", {"a0-n4"})])
def test_an_unlisted_rank_counts_sessions_without_recording(tmp_path: Path, rank: str, sessions: set[str]) -> None:
    ended = run_program(ON_RANK_0_ONLY, tmp_path, RANK=rank, WORLD_SIZE="2")
    assert ended.reported == {"problems": {"profile-not-running": 1}}, ended.log
    assert set(traces(tmp_path)) == sessions


@pytest.mark.parametrize("ranks", ["0", "'0'", "[0.5]", "['0']", "[None]", "object()"])
def test_an_invalid_list_of_ranks_is_logged_once_and_no_rank_records(tmp_path: Path, ranks: str) -> None:
    ended = run_program(
        f"""
        run = begin()
        profile = xprof(process_index_list={ranks})
        profile.start(); step(); profile.stop()
        with profile:
            step()
        run.close()
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert ended.reported == {"problems": {"profile-ranks": 1}}, ended.log
    assert "no profile is taken, pass a list like [0], or None for all ranks" in ended.log
    assert traces(tmp_path) == {}


def test_unknown_parameters_are_ignored_with_a_hint_and_the_profile_is_taken(tmp_path: Path) -> None:
    ended = run_program(
        """
        run = begin()
        profile = xprof(None, None, "mine", session="mine", duration=3)
        profile.start("own", 2, step=5); step("recorded"); profile.stop(1, now=True)
        run.close()
        report(problems=diagnostics.counts())
        """,
        tmp_path,
    )
    assert "recorded" in stored(ended, "own")
    names = ("xprof", "xprof.start", "xprof.stop")
    assert ended.reported["problems"] == {f"{name}-{kind}": 1 for name in names for kind in ("parameters", "arguments")}
    assert "xprof: unknown parameters 'duration', 'session' are ignored; did you mean 'session_id'?" in ended.log
    assert "xprof: too many positional arguments, the last 1 ignored; the parameters are run, " in ended.log


def test_xprof_is_a_class_like_that_of_googles_sdk() -> None:
    class Mine(xprof):
        def __init__(self, color: str, *, size: int) -> None:
            super().__init__(process_index_list=[0], session_id=f"{color}-{size}")

    assert xprof is Xprof
    mine = Mine("blue", size=3)
    assert isinstance(mine, xprof)
    assert isinstance(mine, Mine)
    assert isinstance(xprof(), xprof)


def test_without_parentheses_it_decorates_any_callable(caplog: Any) -> None:
    class Mine(xprof):
        pass

    assert cast("Any", xprof(partial(pow, 2)))(3) == 8
    assert cast("Any", Mine(partial(pow, 2)))(3) == 8
    with xprof(run=cast("Any", 3)):
        assert "run=3 is not a run" in caplog.text
