"""The engine against servers that behave and servers that do not: one outcome each, with a reason of its own."""

import asyncio
import hashlib
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import grpc
import pytest
from mldiagnostics.capture.budget import SMALL_TRACES_BYTES, ByteBudget
from mldiagnostics.capture.engine import run
from mldiagnostics.capture.messages import UNWRITABLE_ROOT
from mldiagnostics.capture.model import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    Recording,
    ServerProbe,
    Target,
    TargetState,
    TraceSink,
    Verify,
)
from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store import Stored
from support.servers import profiler_servers as servers
from support.servers.profiler_process import profiler_process
from support.servers.profiler_servers import FakeProfiler, plain_tcp

QUICK = Options(session="s1", duration_ms=50, deadline_s=60)


@dataclass
class Memory:
    """A sink that keeps traces, after the given failures."""

    failures: list[Exception] = field(default_factory=list)
    traces: dict[str, bytes] = field(default_factory=dict)

    async def __call__(self, target: Target, trace: memoryview) -> Stored:
        if self.failures:
            raise self.failures.pop(0)
        self.traces[target.stem] = bytes(trace)
        return Stored(target.stem, len(trace), f"memory:{target.stem}", hashlib.sha256(trace).hexdigest)


def at(port: int, stem: str = "host-0") -> Target:
    return Target("127.0.0.1", port, stem)


async def captured(
    targets: Sequence[Target],
    options: Options = QUICK,
    sink: TraceSink | None = None,
    control: Control | None = None,
    verify: Verify | None = None,
) -> list[Outcome]:
    async with aclosing(run(targets, options, sink=sink or Memory(), control=control, verify=verify)) as outcomes:
        return [outcome async for outcome in outcomes]


async def only(
    target: Target, options: Options = QUICK, sink: TraceSink | None = None, verify: Verify | None = None
) -> Outcome:
    (outcome,) = await captured([target], options, sink, verify=verify)
    return outcome


async def test_a_trace_is_stored_whole_with_the_times_of_its_host() -> None:
    sink = Memory()
    async with FakeProfiler().serving() as server:
        before_ns = time.time_ns()
        outcome = await only(at(server.port, "trainer-0"), sink=sink)
    assert (outcome.state, outcome.reason, outcome.server) == (
        TargetState.CAPTURED,
        Reason.CAPTURED,
        ServerProbe.SNAPSHOTS,
    )
    assert outcome.file == "memory:trainer-0"
    assert outcome.bytes == len(sink.traces["trainer-0"])
    assert outcome.sha256 == hashlib.sha256(sink.traces["trainer-0"]).hexdigest()
    assert outcome.start_ns is not None
    assert outcome.stop_ns is not None
    assert before_ns <= outcome.start_ns < outcome.stop_ns <= time.time_ns()
    (request,) = server.requests
    assert (request.session_id, request.host_name, request.emit_xspace) == ("s1", "trainer-0", True)
    assert request.repository_root == UNWRITABLE_ROOT
    assert request.opts.duration_ms == 50


async def test_all_targets_have_the_same_start() -> None:
    one, two = FakeProfiler(), FakeProfiler()
    start_ns = time.time_ns() + 3_600_000_000_000
    one.reply = two.reply = servers.replying(servers.answer(servers.trace(start_ns=start_ns, stop_ns=start_ns + 1)))
    async with one.serving(), two.serving():
        outcomes = await captured([at(one.port, "a"), at(two.port, "b")], replace(QUICK, start_ns=start_ns))
    assert {request.opts.start_timestamp_ns for request in one.requests + two.requests} == {start_ns}
    assert [outcome.start_ns for outcome in outcomes] == [start_ns] * 2


async def test_the_start_is_waited_for() -> None:
    async with FakeProfiler().serving() as server:
        start_ns = time.time_ns() + 500_000_000
        outcome = await only(at(server.port), replace(QUICK, start_ns=start_ns))
    assert outcome.start_ns
    assert outcome.start_ns >= start_ns


async def test_a_start_that_has_passed_means_at_once() -> None:
    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), replace(QUICK, start_ns=time.time_ns() - 1))
    assert outcome.state is TargetState.CAPTURED
    assert server.requests[0].opts.start_timestamp_ns == 0


async def test_a_failed_target_does_not_affect_the_others() -> None:
    async with FakeProfiler().serving() as good, plain_tcp(b"HTTP/1.1 400 Bad Request\r\n\r\n") as web:
        outcomes = await captured([at(web, "bad"), at(good.port, "good")])
    assert {outcome.target.stem: outcome.reason for outcome in outcomes} == {
        "good": Reason.CAPTURED,
        "bad": Reason.NOT_A_PROFILER,
    }


async def test_nothing_listens() -> None:
    with socket.socket() as bound_only:
        bound_only.bind(("127.0.0.1", 0))
        port = bound_only.getsockname()[1]
        outcome = await only(at(port))
    assert (outcome.state, outcome.reason) == (TargetState.FAILED, Reason.NOTHING_LISTENS)
    assert str(port) in outcome.message


async def test_a_name_that_does_not_exist_is_unreachable() -> None:
    outcome = await only(Target("no-such-host.invalid", 9999, "host-0"))
    assert outcome.reason is Reason.UNREACHABLE


async def test_a_port_without_a_response_is_silent() -> None:
    async with plain_tcp() as port:
        outcome = await only(at(port), replace(QUICK, deadline_s=10))
    assert outcome.reason is Reason.SILENT


async def test_a_grpc_server_without_the_service_is_not_a_profiler() -> None:
    server = FakeProfiler()
    server.snapshot, server.knows_terminate = servers.unknown_method, False
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.reason is Reason.NOT_A_PROFILER
    assert not server.requests


async def test_an_old_server_is_skipped() -> None:
    server = FakeProfiler()
    server.snapshot = servers.unknown_method
    async with server.serving():
        outcome = await only(at(server.port))
    assert (outcome.state, outcome.reason) == (TargetState.SKIPPED, Reason.SERVER_MAY_DEADLOCK)
    assert outcome.server is ServerProbe.OLD
    assert not server.requests


@pytest.mark.parametrize("allowed_by", ["target", "options"])
async def test_an_old_server_that_is_allowed_is_captured(allowed_by: str) -> None:
    server = FakeProfiler()
    server.snapshot = servers.unknown_method
    async with server.serving():
        target = replace(at(server.port), server_ok=allowed_by == "target")
        outcome = await only(target, replace(QUICK, allow_old_server=allowed_by == "options"))
    assert (outcome.state, outcome.server) == (TargetState.CAPTURED, ServerProbe.OLD)


async def test_a_snapshot_of_continuous_profiling_is_left_unread() -> None:
    server = FakeProfiler()
    server.snapshot = lambda: servers.answer(servers.trace(padding=8_000_000))
    async with server.serving():
        outcome = await only(at(server.port), replace(QUICK, max_trace_bytes=1_000_000))
    assert outcome.state is TargetState.CAPTURED


async def test_an_old_server_that_returns_no_trace_writes_to_the_bucket() -> None:
    server = FakeProfiler()
    server.snapshot, server.reply = servers.unknown_method, servers.replying(b"")
    async with server.serving():
        target = replace(at(server.port), server_ok=True, workload_root="gs://bucket/runs/r1/")
        outcome = await only(target)
    assert outcome.state is TargetState.CAPTURED
    assert outcome.file == "gs://bucket/runs/r1/plugins/profile/s1/host-0.xplane.pb"
    assert server.requests[0].repository_root == "gs://bucket/runs/r1/plugins/profile"


@pytest.mark.parametrize("root", [None, "/data/runs"])
@pytest.mark.parametrize(
    "reply",
    [servers.replying(b""), servers.refusing(grpc.StatusCode.INTERNAL, "/dev/null is not a directory")],
    ids=["says nothing", "fails to write"],
)
async def test_an_old_server_without_a_bucket_is_too_old_and_writes_nothing(
    reply: servers.Reply, root: str | None
) -> None:
    server = FakeProfiler()
    server.snapshot, server.reply = servers.unknown_method, reply
    async with server.serving():
        outcome = await only(replace(at(server.port), server_ok=True, workload_root=root))
    assert (outcome.state, outcome.reason) == (TargetState.FAILED, Reason.SERVER_TOO_OLD)
    assert server.requests[0].repository_root == UNWRITABLE_ROOT


async def test_the_workload_writes_with_delivery_workload() -> None:
    server = FakeProfiler()
    server.reply = servers.replying(b"")
    sink = Memory()
    async with server.serving():
        target = replace(at(server.port), workload_root="/profiles")
        outcome = await only(target, replace(QUICK, delivery=Delivery.WORKLOAD), sink)
    assert (outcome.state, outcome.file) == (TargetState.CAPTURED, "/profiles/plugins/profile/s1/host-0.xplane.pb")
    assert not server.requests[0].emit_xspace
    assert not sink.traces


async def test_a_workload_that_cannot_write_has_its_own_reason() -> None:
    server = FakeProfiler()
    server.reply = servers.refusing(grpc.StatusCode.INTERNAL, "/profiles: Permission denied")
    async with server.serving():
        target = replace(at(server.port), workload_root="/profiles")
        outcome = await only(target, replace(QUICK, delivery=Delivery.WORKLOAD))
    assert outcome.reason is Reason.WORKLOAD_CANNOT_WRITE
    assert "Permission denied" in outcome.message


async def test_a_workload_without_a_root_is_rejected_before_it_is_contacted() -> None:
    async with FakeProfiler().serving() as server:
        with pytest.raises(ConfigurationError, match="host-0"):
            await only(at(server.port), replace(QUICK, delivery=Delivery.WORKLOAD))
    assert not server.requests


async def test_a_busy_process_is_retried_until_it_is_free() -> None:
    server = FakeProfiler()
    server.reply = servers.busy(times=2)
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.state is TargetState.CAPTURED
    assert len(server.requests) == 3


async def test_busy_until_the_deadline() -> None:
    server = FakeProfiler()
    server.reply = servers.busy(times=1_000_000)
    async with server.serving():
        # When less is left than the pause and the duration, it is not tried again: after three or four times here.
        outcome = await only(at(server.port), replace(QUICK, duration_ms=58_500))
    assert outcome.reason is Reason.BUSY


async def test_a_continuous_recording_ends_the_wait_and_is_left_alone() -> None:
    server = FakeProfiler()
    server.reply, server.continuous = servers.busy(times=1_000_000), deque([grpc.StatusCode.ALREADY_EXISTS])
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.reason is Reason.CONTINUOUS_PROFILING_ACTIVE
    assert len(server.requests) == 2
    assert server.stopped_continuous == 0


async def test_a_session_that_ends_during_the_question_is_no_continuous_recording() -> None:
    """The question starts one then, which is stopped at once."""
    server = FakeProfiler()
    server.reply, server.continuous = servers.busy(times=1), deque([grpc.StatusCode.OK])
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.state is TargetState.CAPTURED
    assert server.stopped_continuous == 1


async def test_the_question_of_another_capture_is_no_continuous_recording() -> None:
    codes = [grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.INTERNAL]
    server = FakeProfiler()
    server.reply, server.continuous = servers.busy(times=3), deque(codes)
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.state is TargetState.CAPTURED


async def test_the_past_is_the_snapshot_of_a_continuous_recording() -> None:
    server, sink = FakeProfiler(), Memory()
    server.snapshot = lambda: servers.answer(servers.trace(start_ns=5, stop_ns=9))
    async with server.serving():
        outcome = await only(at(server.port), replace(QUICK, recording=Recording.PAST), sink)
    assert (outcome.state, outcome.start_ns, outcome.stop_ns) == (TargetState.CAPTURED, 5, 9)
    assert [*sink.traces.values()] == [servers.trace(start_ns=5, stop_ns=9)]
    assert not server.requests


@pytest.mark.parametrize("snapshot", [servers.no_session, servers.unknown_method])
async def test_a_process_that_records_nothing_has_no_past(snapshot: Callable[[], bytes]) -> None:
    server = FakeProfiler()
    server.snapshot = snapshot
    async with server.serving():
        outcome = await only(replace(at(server.port), server_ok=True), replace(QUICK, recording=Recording.PAST))
    assert (outcome.state, outcome.reason) == (TargetState.FAILED, Reason.NO_CONTINUOUS_PROFILING)
    assert not server.requests


def test_a_process_cannot_store_its_past() -> None:
    with pytest.raises(ConfigurationError, match="Past"):
        replace(QUICK, recording=Recording.PAST, delivery=Delivery.WORKLOAD)


async def test_a_host_that_takes_too_long_is_slow() -> None:
    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), replace(QUICK, duration_ms=60_000, deadline_s=10))
    assert outcome.reason is Reason.SLOW


async def test_a_response_that_never_starts_holds_no_memory() -> None:
    async def never(_server: FakeProfiler, _request: object) -> bytes:
        await asyncio.Event().wait()
        raise AssertionError

    stalling, good = FakeProfiler(), FakeProfiler()
    stalling.headers_first, stalling.reply = True, never
    options = replace(QUICK, duration_ms=500, deadline_s=10)
    async with stalling.serving(), good.serving():
        targets = [at(stalling.port, "stalling"), at(good.port, "good")]
        async with aclosing(run(targets, options, sink=Memory(), budget=ByteBudget(1000))) as outcomes:
            reasons = {outcome.target.stem: outcome.reason async for outcome in outcomes}
    assert reasons == {"stalling": Reason.SLOW, "good": Reason.CAPTURED}


async def test_a_trace_over_the_cap() -> None:
    server = FakeProfiler()
    server.reply = servers.replying(servers.answer(servers.trace(padding=2_000_000)))
    async with server.serving():
        outcome = await only(at(server.port), replace(QUICK, max_trace_bytes=1_000_000))
    assert outcome.reason is Reason.TRACE_TOO_LARGE


@pytest.mark.parametrize(
    "data",
    [servers.answer(servers.trace(events=0)), servers.answer(servers.trace(), empty=True), b"\x38\x01"],
    ids=["no event", "said to be empty", "nothing but the flag"],
)
async def test_an_empty_trace_is_not_stored(data: bytes) -> None:
    server, sink = FakeProfiler(), Memory()
    server.reply = servers.replying(data)
    async with server.serving():
        outcome = await only(at(server.port), sink=sink)
    assert (outcome.state, outcome.reason) == (TargetState.FAILED, Reason.EMPTY_TRACE)
    assert not sink.traces


@pytest.mark.parametrize("data", [b"", b"\xff\xff", b"\x42\x7f", b"\x40\x01", b"\x42\x02\x0a\x7f"])
async def test_a_response_that_is_not_a_trace(data: bytes) -> None:
    server, sink = FakeProfiler(), Memory()
    server.reply = servers.replying(data)
    async with server.serving():
        outcome = await only(at(server.port), sink=sink)
    assert outcome.reason is Reason.BAD_ANSWER
    assert not sink.traces


async def test_an_error_of_the_server_is_passed_on() -> None:
    server = FakeProfiler()
    server.reply = servers.refusing(grpc.StatusCode.INTERNAL, "CUPTI could not be loaded")
    async with server.serving():
        outcome = await only(at(server.port))
    assert outcome.reason is Reason.SERVER_ERROR
    assert "CUPTI could not be loaded" in outcome.message


async def test_a_process_killed_in_mid_capture_is_a_lost_connection() -> None:
    with profiler_process() as victim:
        coming = asyncio.create_task(only(at(victim.port), replace(QUICK, duration_ms=60_000)))
        await asyncio.to_thread(victim.wait_until_recording)
        victim.kill()
        outcome = await coming
    assert outcome.reason is Reason.CONNECTION_LOST


async def test_terminate_stores_what_was_recorded() -> None:
    control, sink = Control(), Memory()
    async with FakeProfiler().serving() as server:
        options = replace(QUICK, duration_ms=60_000)
        coming = asyncio.create_task(captured([at(server.port)], options, sink, control))
        await server.began.wait()
        control.terminate()
        (outcome,) = await coming
    assert (outcome.state, outcome.reason) == (TargetState.CANCELLED, Reason.CANCELLED)
    assert outcome.file == "memory:host-0"
    assert sink.traces
    assert outcome.start_ns
    assert outcome.stop_ns
    assert outcome.stop_ns - outcome.start_ns < 60_000_000_000


async def test_terminate_before_anything_was_recorded() -> None:
    control = Control()
    control.terminate()
    async with FakeProfiler().serving() as server:
        (outcome,) = await captured([at(server.port)], control=control)
    assert (outcome.state, outcome.file) == (TargetState.CANCELLED, None)
    assert not server.requests


async def test_terminate_ends_the_wait_for_a_busy_process() -> None:
    server, control = FakeProfiler(), Control()
    server.reply = servers.busy(times=1_000_000)
    async with server.serving():
        coming = asyncio.create_task(captured([at(server.port)], control=control))
        await server.began.wait()
        control.terminate()
        (outcome,) = await coming
    assert outcome.state is TargetState.CANCELLED


@pytest.mark.parametrize("headers_first", [False, True])
async def test_terminate_ends_the_capture_of_a_server_that_never_responds(headers_first: bool) -> None:
    server, control, stopping = FakeProfiler(), Control(), asyncio.Event()
    server.reply = servers.silent
    server.terminate_waits_for = stopping
    server.headers_first = headers_first
    options = replace(QUICK, deadline_s=3600, cancel_timeout_s=0.2)
    async with server.serving():
        coming = asyncio.create_task(captured([at(server.port)], options, control=control))
        await server.began.wait()
        control.terminate()
        (outcome,) = await asyncio.wait_for(coming, 60)
        stopping.set()
    assert (outcome.state, outcome.reason) == (TargetState.CANCELLED, Reason.CANCELLED)
    assert outcome.file is None


async def test_a_trace_that_has_arrived_is_stored_after_terminate_however_slow_the_store() -> None:
    control, memory, storing = Control(), Memory(), asyncio.Event()

    async def sink(target: Target, trace: memoryview) -> Stored:
        storing.set()
        await asyncio.sleep(0.5)  # longer than `cancel_timeout_s`
        return await memory(target, trace)

    async with FakeProfiler().serving() as server:
        options = replace(QUICK, cancel_timeout_s=0.01)
        coming = asyncio.create_task(captured([at(server.port)], options, sink, control))
        await storing.wait()
        control.terminate()
        (outcome,) = await coming
    assert outcome.file == "memory:host-0"


async def test_closing_the_stream_early_aborts_the_captures() -> None:
    gone = asyncio.Event()

    async def reply(_server: FakeProfiler, _request: object) -> bytes:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            gone.set()
            raise
        return b""

    slow, quick = FakeProfiler(), FakeProfiler()
    slow.reply = reply
    async with slow.serving(), quick.serving():
        targets = [at(slow.port, "slow"), at(quick.port, "quick")]
        async with aclosing(run(targets, replace(QUICK, duration_ms=300), sink=Memory())) as outcomes:
            first = await anext(outcomes)
            await slow.began.wait()
        await asyncio.wait_for(gone.wait(), 60)
    assert first.target.stem == "quick"


async def test_an_address_of_another_pod_is_not_contacted() -> None:
    async def verify(_target: Target) -> str | None:
        return "its uid is another"

    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), verify=verify)
    assert outcome.reason is Reason.WRONG_POD
    assert "its uid is another" in outcome.message
    assert not server.requests


async def test_a_pod_replaced_during_the_capture_leaves_no_file() -> None:
    complaints = [None, "it was replaced"]

    async def verify(_target: Target) -> str | None:
        return complaints.pop(0)

    sink = Memory()
    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), sink=sink, verify=verify)
    assert outcome.reason is Reason.WRONG_POD
    assert not sink.traces


async def test_a_store_that_recovers_gets_the_trace() -> None:
    sink = Memory(failures=[StoreUnreachable("away"), StoreNotFound("no bucket yet")])
    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), sink=sink)
    assert (outcome.state, outcome.file) == (TargetState.CAPTURED, "memory:host-0")


async def test_stores_that_do_not_recover() -> None:
    troubles: dict[Reason, Exception] = {
        Reason.STORE_UNREACHABLE: StoreUnreachable("the store's own words"),
        Reason.STORE_MISSING: StoreNotFound("the store's own words"),
        Reason.STORE_FORBIDDEN: StoreForbidden("the store's own words"),
        Reason.STORE_FULL: StoreFull("the store's own words"),
    }

    async def captured_into(error: Exception) -> tuple[Outcome, Memory]:
        sink = Memory(failures=[error] * 100)
        return await only(at(server.port), replace(QUICK, session=type(error).__name__, deadline_s=10), sink), sink

    async with FakeProfiler().serving() as server:
        ended = await asyncio.gather(*map(captured_into, troubles.values()))
    for reason, (outcome, sink) in zip(troubles, ended, strict=True):
        assert (outcome.state, outcome.reason, outcome.file) == (TargetState.FAILED, reason, None)
        assert "the store's own words" in outcome.message
        assert not sink.traces


async def test_an_existing_file_is_not_retried() -> None:
    sink = Memory(failures=[AlreadyStored("there is another")])
    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), sink=sink)
    assert (outcome.reason, sink.traces) == (Reason.FILE_EXISTS, {})


async def test_a_hanging_store_is_reported_as_a_slow_store() -> None:
    async def hang(_target: Target, _trace: memoryview) -> Stored:
        await asyncio.Event().wait()
        raise AssertionError

    async with FakeProfiler().serving() as server:
        outcome = await only(at(server.port), replace(QUICK, deadline_s=10), hang)
    assert outcome.reason is Reason.STORE_SLOW


async def test_a_slow_store_delays_reading_and_bounds_memory() -> None:
    size, held, most = 10 * 1024 * 1024, 0, 0

    async def slow(target: Target, trace: memoryview) -> Stored:
        nonlocal held, most
        held += len(trace)
        most = max(most, held)
        if held >= 4 * size:  # the share of one tenant is full
            full.set()
        await full.wait()
        held -= len(trace)
        return Stored(target.stem, len(trace), "", str)

    full, server = asyncio.Event(), FakeProfiler()
    server.reply = servers.replying(servers.answer(servers.trace(padding=size)))
    async with server.serving():
        targets = [at(server.port, f"host-{number}") for number in range(8)]
        async with aclosing(run(targets, QUICK, sink=slow, budget=ByteBudget())) as outcomes:
            states = [outcome.state async for outcome in outcomes]
    assert states == [TargetState.CAPTURED] * 8
    assert 4 * size <= most <= SMALL_TRACES_BYTES < 8 * size


async def test_an_error_of_a_callable_affects_only_its_target(caplog: pytest.LogCaptureFixture) -> None:
    async def verify(target: Target) -> str | None:
        if target.stem == "odd":
            raise KeyError("uid")
        return None

    async with FakeProfiler().serving() as server:
        outcomes = await captured([at(server.port, "odd"), at(server.port, "even")], verify=verify)
    assert {outcome.target.stem: outcome.reason for outcome in outcomes} == {
        "odd": Reason.UNEXPECTED,
        "even": Reason.CAPTURED,
    }
    assert "KeyError" in caplog.text


async def test_every_failure_has_a_message_with_a_cause() -> None:
    outcomes = await captured([Target("127.0.0.1", 1, "closed"), Target("no-such-host.invalid", 9999, "unnamed")])
    assert all(":" in outcome.message for outcome in outcomes)
