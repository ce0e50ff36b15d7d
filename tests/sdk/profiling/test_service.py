"""The profiler service, called by the capture engine and by a bare gRPC client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest
from mldiagnostics.capture import (
    Control,
    Delivery,
    Options,
    Outcome,
    Reason,
    ServerProbe,
    Target,
    TargetState,
    capture,
    run,
)
from mldiagnostics.capture.failures import is_busy
from mldiagnostics.layout import trace_key
from mldiagnostics.profiling.recorder import Busy, CannotRecord
from mldiagnostics.profiling.service import ProfilerService
from mldiagnostics.profiling.xspace import HOST_PLANE, XSpaceLine, encode
from mldiagnostics.store import open_store
from support.servers.profiler_protos import message

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_S = 60.0


class FakeRecorder:
    """A recorder of one event that spans the recording; `started` is set at its start."""

    framework = "Fake"
    version = "1.0"

    def __init__(self) -> None:
        self.started = threading.Event()
        self.refusal: CannotRecord | None = None

    def start(self) -> FakeRecorder:
        if self.refusal is not None:
            raise self.refusal
        self._start_ns = time.time_ns()
        self.started.set()
        return self

    def stop(self) -> bytes:
        stop_ns = time.time_ns()
        line = XSpaceLine("main", [("tick", self._start_ns, stop_ns - self._start_ns)])
        return encode({HOST_PLANE: {1: line}}, host="h", start_ns=self._start_ns, stop_ns=stop_ns)

    def serve(self, port: int) -> ProfilerService:
        return ProfilerService(self, port)


@pytest.fixture
def recorder() -> FakeRecorder:
    return FakeRecorder()


@pytest.fixture
def service(recorder: FakeRecorder) -> Iterator[ProfilerService]:
    served = recorder.serve(0)
    yield served
    served.stop()


async def outcome_of(
    service: ProfilerService, storage: Path, options: Options, control: Control | None = None, **more: Any
) -> Outcome:
    store = open_store(str(storage))

    async def sink(target: Target, trace: memoryview) -> Any:
        return await asyncio.to_thread(store.put, trace_key(options.session, target.stem), trace)

    target = Target("127.0.0.1", service.port, "trainer-0", **more)
    async with contextlib.aclosing(run([target], options, sink=sink, control=control)) as outcomes:
        return await anext(outcomes)


def traces_below(folder: Path) -> list[str]:
    return [str(file) for file in folder.rglob("*.xplane.pb")]


def duration_ns(outcome: Outcome) -> int:
    assert outcome.start_ns
    assert outcome.stop_ns
    return outcome.stop_ns - outcome.start_ns


def test_the_profiler_service_is_captured_like_jaxs_server(service: ProfilerService, tmp_path: Path) -> None:
    report = capture(
        [f"127.0.0.1:{service.port}", f"localhost:{service.port}"][:1], duration_ms=50, storage=str(tmp_path)
    )
    (outcome,) = report.outcomes
    assert (outcome.state, outcome.server) == (TargetState.CAPTURED, ServerProbe.SNAPSHOTS)
    assert duration_ns(outcome) >= 50_000_000
    assert Path(outcome.file or "").parent == tmp_path / "plugins/profile" / report.session


async def test_a_profile_of_the_service_starts_at_the_requested_time(service: ProfilerService, tmp_path: Path) -> None:
    start_ns = time.time_ns() + 500_000_000
    outcome = await outcome_of(service, tmp_path, Options("s", 10, PATIENCE_S, start_ns=start_ns))
    assert outcome.start_ns
    assert outcome.start_ns >= start_ns


async def test_the_second_capture_waits_for_the_first(service: ProfilerService, tmp_path: Path) -> None:
    outcomes = await asyncio.gather(
        *(outcome_of(service, tmp_path, Options(name, 200, PATIENCE_S)) for name in ("one", "two"))
    )
    assert [outcome.state for outcome in outcomes] == [TargetState.CAPTURED] * 2
    earlier, later = sorted(outcomes, key=lambda outcome: outcome.start_ns or 0)
    assert (later.start_ns or 0) >= (earlier.stop_ns or 0)


async def test_the_caller_gets_the_reason_of_a_failure(
    service: ProfilerService, recorder: FakeRecorder, tmp_path: Path
) -> None:
    recorder.refusal = CannotRecord("the clockwork is broken")
    outcome = await outcome_of(service, tmp_path, Options("s", 10, PATIENCE_S))
    assert outcome.reason is Reason.SERVER_ERROR
    assert "the clockwork is broken" in outcome.message
    recorder.refusal = None
    assert (await outcome_of(service, tmp_path, Options("t", 10, PATIENCE_S))).state is TargetState.CAPTURED


async def test_terminate_keeps_the_trace(service: ProfilerService, recorder: FakeRecorder, tmp_path: Path) -> None:
    control = Control()
    task = asyncio.create_task(outcome_of(service, tmp_path, Options("s", 60_000, PATIENCE_S), control))
    assert await asyncio.to_thread(recorder.started.wait, PATIENCE_S)
    control.terminate()
    outcome = await task
    assert (outcome.state, outcome.reason) == (TargetState.CANCELLED, Reason.CANCELLED)
    assert traces_below(tmp_path) == [outcome.file]
    assert duration_ns(outcome) < 60_000_000_000


async def test_a_disconnected_caller_frees_the_profiler(
    service: ProfilerService, recorder: FakeRecorder, tmp_path: Path
) -> None:
    task = asyncio.create_task(outcome_of(service, tmp_path, Options("s", 60_000, PATIENCE_S)))
    assert await asyncio.to_thread(recorder.started.wait, PATIENCE_S)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert (await outcome_of(service, tmp_path, Options("t", 10, PATIENCE_S))).state is TargetState.CAPTURED


async def test_the_process_writes_its_trace_to_the_directory(service: ProfilerService, tmp_path: Path) -> None:
    options = Options("own", 10, PATIENCE_S, delivery=Delivery.WORKLOAD)
    outcome = await outcome_of(service, tmp_path / "unused", options, workload_root=str(tmp_path / "pod"))
    assert outcome.state is TargetState.CAPTURED
    assert outcome.file == str(tmp_path / "pod" / trace_key("own", "trainer-0"))
    assert traces_below(tmp_path) == [outcome.file]


async def test_an_existing_file_is_not_overwritten(service: ProfilerService, tmp_path: Path) -> None:
    there = tmp_path / trace_key("own", "trainer-0")
    there.parent.mkdir(parents=True)
    there.write_bytes(b"precious")
    options = Options("own", 10, PATIENCE_S, delivery=Delivery.WORKLOAD)
    outcome = await outcome_of(service, tmp_path, options, workload_root=str(tmp_path))
    assert outcome.reason is Reason.WORKLOAD_CANNOT_WRITE
    assert there.read_bytes() == b"precious"


async def call(service: ProfilerService, method: str, request: bytes) -> Any:
    """Call a method and return its response, or the error."""
    async with grpc.aio.insecure_channel(f"127.0.0.1:{service.port}") as channel:
        try:
            return await channel.unary_unary(f"/tensorflow.ProfilerService/{method}")(request, timeout=PATIENCE_S)
        except grpc.aio.AioRpcError as error:
            return error


async def test_busy_has_jaxs_message(service: ProfilerService, recorder: FakeRecorder) -> None:
    recorder.refusal = Busy("the program records a profile")
    error = await call(service, "Profile", message("ProfileRequest")(emit_xspace=True).SerializeToString())
    assert is_busy(code=error.code().name, details=error.details())


async def test_a_terminate_before_its_session_stops_it_once(service: ProfilerService) -> None:
    await call(service, "Terminate", message("TerminateRequest")(session_id="s").SerializeToString())
    request = message("ProfileRequest")(session_id="s", emit_xspace=True)
    request.opts.duration_ms = 600_000
    answer = message("ProfileResponse").FromString(await call(service, "Profile", request.SerializeToString()))
    assert answer.xspace.planes
    request.opts.duration_ms = 50
    answer = message("ProfileResponse").FromString(await call(service, "Profile", request.SerializeToString()))
    event = answer.xspace.planes[0].lines[0].events[0]
    assert event.duration_ps >= 50 * 10**9


@pytest.mark.parametrize("root", ["", "/tmp", "plugins/profile", "/tmp/plugins/profile/.."])
async def test_only_profile_directories_are_written_to(service: ProfilerService, root: str) -> None:
    request = message("ProfileRequest")(session_id="s", host_name="h", repository_root=root)
    error = await call(service, "Profile", request.SerializeToString())
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "does not end in plugins/profile" in error.details()


@pytest.mark.parametrize("name", ["../../x", "a/b", ".."])
async def test_names_do_not_lead_out_of_the_session(service: ProfilerService, tmp_path: Path, name: str) -> None:
    root = tmp_path / "deep/er/plugins/profile"
    request = message("ProfileRequest")(session_id=name, host_name=name, repository_root=str(root))
    assert await call(service, "Profile", request.SerializeToString()) == b""
    (file,) = traces_below(tmp_path)
    assert Path(file).parent.parent == root


@pytest.mark.parametrize("method", ["Profile", "Terminate"])
async def test_invalid_requests_are_rejected(service: ProfilerService, method: str) -> None:
    error = await call(service, method, b"\xff\xff\xff")
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_other_methods_are_unimplemented(service: ProfilerService) -> None:
    assert (await call(service, "GetSnapshot", b"")).code() is grpc.StatusCode.NOT_FOUND
    assert (await call(service, "Monitor", b"")).code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_taken_port_is_an_error_and_not_shared(recorder: FakeRecorder) -> None:
    with socket.create_server(("", 0)) as server, pytest.raises(RuntimeError):
        recorder.serve(server.getsockname()[1])


def test_a_stopped_service_frees_its_port(recorder: FakeRecorder) -> None:
    first = recorder.serve(0)
    first.stop()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            recorder.serve(first.port).stop()
        except RuntimeError:  # noqa: PERF203 - a loop that waits
            assert time.monotonic() < deadline, "the port stays taken"
        else:
            break
