"""Real profiler servers (JAX, an old JAX, TensorFlow), with XProf as the reader of stored traces."""

import asyncio
import contextlib
import hashlib
import itertools
import json
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from mldiagnostics.capture import (
    CaptureReport,
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    Recording,
    ServerProbe,
    Target,
    TargetState,
    capture,
    run,
)
from mldiagnostics.capture.messages import decode_response
from mldiagnostics.capture.trace import summarize
from mldiagnostics.capture.wire import integer, message
from mldiagnostics.layout import trace_key
from mldiagnostics.store import open_store
from support.programs import environments
from support.programs.training import Training, training

pytestmark = pytest.mark.peers

BUSY_MS = 1000  # in which also a busy machine runs a step
THIS = Path(sys.executable)


def environment(name: str) -> Path:
    try:
        return environments.interpreter(name)
    except environments.Unavailable as error:
        pytest.skip(f"no environment {name}: {error}")


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Training]]:
    folder = tmp_path_factory.mktemp("jax")
    with ExitStack() as stack:
        yield [stack.enter_context(training(THIS, "training_jax.py", folder)) for _ in range(2)]


def traces_below(folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*.xplane.pb")]


def xprof(tool: str, files: list[str], **parameters: object) -> Any:
    from xprof.convert import raw_to_tool_data

    data, _ = raw_to_tool_data.xspace_to_tool_data(files, tool, {"use_saved_result": False, **parameters})
    return json.loads(data)


def test_both_hosts_of_a_jax_job_end_in_one_session_that_xprof_reads(two_hosts: list[Training], tmp_path: Path) -> None:
    report = overlapping(two_hosts, tmp_path)
    assert [outcome.server for outcome in report.outcomes] == [ServerProbe.SNAPSHOTS] * 2
    files = sorted(tmp_path.glob(f"*/plugins/profile/{report.session}/*.xplane.pb"))
    assert [str(file) for file in files] == sorted(outcome.file or "" for outcome in report.outcomes)
    for outcome in report.outcomes:
        assert outcome.file
        assert outcome.sha256 == hashlib.sha256(Path(outcome.file).read_bytes()).hexdigest()
    names = {event.get("args", {}).get("name", "") for event in xprof("trace_viewer", [str(files[0])])["traceEvents"]}
    assert any("/host:CPU" in name for name in names)
    overview = xprof("overview_page", [str(file) for file in files])
    steps = next(part for part in overview if "steptime_ms_average" in part.get("p", {}))
    assert steps["rows"], "XProf sees no steps"


def overlapping(hosts: list[Training], storage: Path) -> CaptureReport:
    """Capture, longer each time, until the recordings overlap: a busy machine starts one late."""
    for duration_ms in (BUSY_MS, 5000, 20_000):
        report = capture(
            [host.address for host in hosts], duration_ms=duration_ms, storage=str(storage / str(duration_ms))
        )
        assert [outcome.state for outcome in report.outcomes] == [TargetState.CAPTURED] * 2
        if report.skew_ms is not None and report.skew_ms < duration_ms:
            return report
    raise AssertionError(f"the hosts' recordings do not overlap: {report.skew_ms} ms")


def test_the_hosts_own_times_are_those_of_the_recording(two_hosts: list[Training], tmp_path: Path) -> None:
    before_ns = time.time_ns()
    (outcome,) = capture([two_hosts[0].address], duration_ms=BUSY_MS, storage=str(tmp_path)).outcomes
    assert outcome.start_ns
    assert outcome.stop_ns
    assert before_ns < outcome.start_ns < outcome.stop_ns < time.time_ns()
    assert outcome.stop_ns - outcome.start_ns >= BUSY_MS * 1_000_000


async def outcomes_of(
    host: Training, options: Options, storage: Path, control: Control | None = None, *, workload_root: str | None = None
) -> list[Outcome]:
    store = open_store(str(storage))

    async def sink(target: Target, trace: memoryview) -> Any:
        return await asyncio.to_thread(store.put, trace_key(options.session, target.stem), trace)

    async with contextlib.aclosing(
        run(
            [Target("127.0.0.1", host.port, "trainer-0", workload_root=workload_root)],
            options,
            sink=sink,
            control=control,
        )
    ) as outcomes:
        return [outcome async for outcome in outcomes]


async def test_a_second_capture_waits_for_the_first(two_hosts: list[Training], tmp_path: Path) -> None:
    first, second = await asyncio.gather(
        outcomes_of(two_hosts[0], Options("first", BUSY_MS, 60), tmp_path),
        outcomes_of(two_hosts[0], Options("second", BUSY_MS, 60), tmp_path),
    )
    assert [outcome.state for outcome in first + second] == [TargetState.CAPTURED] * 2
    earlier, later = sorted(first + second, key=lambda outcome: outcome.start_ns or 0)
    assert (later.start_ns or 0) > (earlier.stop_ns or 0)


async def test_only_a_capture_of_the_past_takes_events_of_a_continuous_recording(
    two_hosts: list[Training], tmp_path: Path
) -> None:
    host = two_hosts[0]
    async with grpc.aio.insecure_channel(host.address, options=[("grpc.max_receive_message_length", -1)]) as channel:

        def called(method: str, request: bytes = b"") -> Awaitable[bytes]:
            return channel.unary_unary(f"/tensorflow.ProfilerService/{method}")(request)

        tracing = message(4, integer(2, 2) + integer(5, 1))
        await called("StartContinuousProfiling", tracing)
        try:
            await asyncio.to_thread(host.wait_for_step, host.steps() + 10)
            before_ns = time.time_ns()
            (outcome,) = await outcomes_of(host, Options("now", duration_ms=1, deadline_s=60), tmp_path)
            (past,) = await outcomes_of(
                host, Options("past", duration_ms=1, deadline_s=60, recording=Recording.PAST), tmp_path
            )
            await asyncio.to_thread(host.wait_for_step, host.steps() + 10)
            trace = decode_response(memoryview(await called("GetSnapshot"))).trace
        finally:
            await called("StopContinuousProfiling")
    (after,) = await outcomes_of(
        host, Options("after", duration_ms=1, deadline_s=60, recording=Recording.PAST), tmp_path
    )
    assert (outcome.state, outcome.reason) == (TargetState.FAILED, Reason.CONTINUOUS_PROFILING_ACTIVE)
    assert past.state is TargetState.CAPTURED
    assert past.start_ns is not None
    assert past.start_ns < before_ns
    assert trace is not None
    assert summarize(trace).has_events  # the recording goes on
    assert (after.state, after.reason) == (TargetState.FAILED, Reason.NO_CONTINUOUS_PROFILING)


async def until_held(host: Training, storage: Path) -> None:
    """Return once another session holds the process: a short one, now and then, finds no room."""
    async with asyncio.timeout(120):
        for attempt in itertools.count():
            (outcome,) = await outcomes_of(host, Options(f"ask-{attempt}", duration_ms=1, deadline_s=2), storage)
            if outcome.reason is Reason.BUSY:
                return
            # The other capture, which found the process busy with this one, retries meanwhile.
            await asyncio.to_thread(host.wait_for_step, host.steps() + 1000)


async def test_terminate_keeps_what_was_recorded(two_hosts: list[Training], tmp_path: Path) -> None:
    control = Control()
    coming = asyncio.create_task(outcomes_of(two_hosts[0], Options("cut", 60_000, 240), tmp_path, control))
    await until_held(two_hosts[0], tmp_path)
    await asyncio.to_thread(two_hosts[0].wait_for_step, two_hosts[0].steps() + 300)
    control.terminate()
    (outcome,) = await coming
    assert (outcome.state, outcome.reason) == (TargetState.CANCELLED, Reason.CANCELLED)
    assert outcome.file
    assert xprof("trace_viewer", [outcome.file])["traceEvents"]
    assert (outcome.stop_ns or 0) - (outcome.start_ns or 0) < 60_000_000_000


async def test_the_process_writes_its_own_trace_to_the_requested_directory(
    two_hosts: list[Training], tmp_path: Path
) -> None:
    options = Options("own", BUSY_MS, 60, delivery=Delivery.WORKLOAD)
    (outcome,) = await outcomes_of(two_hosts[0], options, tmp_path / "unused", workload_root=str(tmp_path / "pod"))
    assert outcome.state is TargetState.CAPTURED
    assert outcome.file == str(tmp_path / "pod" / trace_key("own", "trainer-0"))
    assert traces_below(tmp_path) == [outcome.file]


async def test_a_process_that_cannot_write_its_trace_says_why(two_hosts: list[Training], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = Options("own", 100, 60, delivery=Delivery.WORKLOAD)
    (outcome,) = await outcomes_of(two_hosts[0], options, tmp_path, workload_root=str(tmp_path / "file"))
    assert outcome.reason is Reason.WORKLOAD_CANNOT_WRITE
    assert str(tmp_path / "file") in outcome.message


def test_an_idle_process_has_an_empty_trace(tmp_path: Path) -> None:
    with training(THIS, "training_jax.py", tmp_path, "--idle") as host:
        (outcome,) = capture([host.address], duration_ms=100, storage=str(tmp_path / "traces")).outcomes
    assert outcome.reason is Reason.EMPTY_TRACE
    assert traces_below(tmp_path) == []


def test_an_old_jax_is_skipped_and_continues_training(tmp_path: Path) -> None:
    with training(environment("jax-0.8"), "training_jax.py", tmp_path) as host:
        (outcome,) = capture([host.address], duration_ms=100, storage=str(tmp_path / "traces")).outcomes
        assert (outcome.state, outcome.reason) == (TargetState.SKIPPED, Reason.SERVER_MAY_DEADLOCK)
        host.wait_for_step(host.steps() + 100)


def test_an_old_jax_beside_tensorflow_is_captured_when_allowed(tmp_path: Path) -> None:
    with training(environment("jax-0.8"), "training_jax.py", tmp_path, "--tensorflow-importable") as host:
        storage = tmp_path / "traces"
        (outcome,) = capture([host.address], duration_ms=BUSY_MS, storage=str(storage), allow_old_server=True).outcomes
        host.wait_for_step(host.steps() + 100)
    assert (outcome.state, outcome.server) == (TargetState.CAPTURED, ServerProbe.OLD)
    assert traces_below(storage) == [outcome.file]
    assert xprof("trace_viewer", [outcome.file or ""])["traceEvents"]


def test_tensorflows_own_server_answers_like_a_new_jax(tmp_path: Path) -> None:
    with training(environment("tensorflow"), "training_tensorflow.py", tmp_path) as host:
        (outcome,) = capture([host.address], duration_ms=BUSY_MS, storage=str(tmp_path / "traces")).outcomes
    assert (outcome.state, outcome.server) == (TargetState.CAPTURED, ServerProbe.SNAPSHOTS)
    assert outcome.start_ns
    assert xprof("trace_viewer", [outcome.file or ""])["traceEvents"]
