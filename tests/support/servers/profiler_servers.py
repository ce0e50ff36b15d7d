"""Profiler servers with correct and faulty behaviour, each on a port that the system chooses."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import grpc
import grpc.aio
from support.servers.profiler_protos import message
from support.servers.stream_servers import listening

SERVICE = "tensorflow.ProfilerService"
BUSY = "Another profiling session active."


Reply: TypeAlias = "Callable[[FakeProfiler, Any], Awaitable[bytes]]"


class Refuse(Exception):
    """Ends a call with a status other than OK."""

    def __init__(self, code: grpc.StatusCode, details: str = "") -> None:
        super().__init__(details)
        self.code = code
        self.details = details


class FakeProfiler:
    """A ProfilerService that behaves like jaxlib's unless a test replaces parts; it keeps all requests."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[Any] = []
        self.began = asyncio.Event()
        self.may_end = asyncio.Event()
        """Recordings go on beyond their duration until it is set, as it is at first."""
        self.may_end.set()
        self._ended: dict[str, asyncio.Event] = {}
        self.reply: Reply = recorded
        self.snapshot: Callable[[], bytes] = no_session
        self.continuous: deque[grpc.StatusCode] = deque()
        """Responses to StartContinuousProfiling, the last one for good; without one, another session is active."""
        self.stopped_continuous = 0
        self.knows_terminate = True
        self.terminate_waits_for: asyncio.Event | None = None
        self.headers_first = False

    def ended(self, session: str) -> asyncio.Event:
        """Return the event of a request to terminate the session."""
        return self._ended.setdefault(session, asyncio.Event())

    async def profile(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        decoded = message("ProfileRequest").FromString(request)
        self.requests.append(decoded)
        self.began.set()
        if self.headers_first:
            await context.send_initial_metadata(())
        try:
            return await self.reply(self, decoded)
        except Refuse as refusal:
            await context.abort(refusal.code, refusal.details)

    async def get_snapshot(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        try:
            return self.snapshot()
        except Refuse as refusal:
            await context.abort(refusal.code, refusal.details)

    async def start_continuous(self, _: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if not self.continuous:
            await context.abort(grpc.StatusCode.INTERNAL, BUSY)
        code = self.continuous.popleft() if len(self.continuous) > 1 else self.continuous[0]
        if code is not grpc.StatusCode.OK:
            await context.abort(code, "A profiling session is already running.")
        return b""

    async def stop_continuous(self, _: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        self.stopped_continuous += 1
        return b""

    async def terminate(self, request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        if not self.knows_terminate:
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, "")
        if self.terminate_waits_for is not None:
            await self.terminate_waits_for.wait()
        self.ended(message("TerminateRequest").FromString(request).session_id).set()
        return b""

    @asynccontextmanager
    async def serving(self, address: str = "127.0.0.1") -> AsyncIterator["FakeProfiler"]:
        server = grpc.aio.server(options=[("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0)])
        methods = {
            "Profile": self.profile,
            "GetSnapshot": self.get_snapshot,
            "StartContinuousProfiling": self.start_continuous,
            "StopContinuousProfiling": self.stop_continuous,
            "Terminate": self.terminate,
        }
        handlers: dict[str, Any] = {
            name: grpc.unary_unary_rpc_method_handler(method) for name, method in methods.items()
        }
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
        self.port = server.add_insecure_port(f"{address}:0")
        await server.start()
        try:
            yield self
        finally:
            await server.stop(None)


def no_session() -> bytes:
    """Reply as jaxlib >= 0.9 without continuous profiling."""
    raise Refuse(grpc.StatusCode.NOT_FOUND, "No continuous profiling session found.")


def unknown_method() -> bytes:
    """Reply as older servers to GetSnapshot."""
    raise Refuse(grpc.StatusCode.UNIMPLEMENTED)


async def recorded(server: FakeProfiler, request: Any) -> bytes:
    """Record from the requested start until the duration is over or the session is terminated."""
    await asyncio.sleep(max(request.opts.start_timestamp_ns - time.time_ns(), 0) / 1e9)
    start_ns = time.time_ns()
    try:
        await asyncio.wait_for(server.ended(request.session_id).wait(), request.opts.duration_ms / 1000)
    except TimeoutError:
        await server.may_end.wait()
    return answer(trace(start_ns=start_ns, stop_ns=time.time_ns()))


def refusing(code: grpc.StatusCode, details: str = "") -> Reply:
    async def reply(_server: FakeProfiler, _request: Any) -> bytes:
        raise Refuse(code, details)

    return reply


async def silent(_server: FakeProfiler, _request: Any) -> bytes:
    """Never respond."""
    await asyncio.Event().wait()
    return b""


def replying(data: bytes) -> Reply:
    async def reply(_server: FakeProfiler, _request: Any) -> bytes:
        return data

    return reply


def busy(times: int) -> Reply:
    """Refuse as jaxlib does while another session runs, then behave."""

    async def reply(server: FakeProfiler, request: Any) -> bytes:
        if len(server.requests) <= times:
            raise Refuse(grpc.StatusCode.INTERNAL, BUSY)
        return await recorded(server, request)

    return reply


def trace(*, start_ns: int = 1, stop_ns: int = 2, events: int = 1, padding: int = 0) -> bytes:
    """Return an XSpace in jaxlib's layout: a host plane with events and the `Task Environment`."""
    space = message("XSpace")()
    plane = space.planes.add(id=1, name="/host:CPU")
    line = plane.lines.add(id=1, name="python", timestamp_ns=start_ns)
    for at in range(events):
        line.events.add(metadata_id=1, offset_ps=at, duration_ps=1)
    plane.event_metadata[1].name = "x" * padding
    environment = space.planes.add(id=2, name="Task Environment")
    for key, (name, value) in enumerate({"profile_start_time": start_ns, "profile_stop_time": stop_ns}.items(), 1):
        environment.stat_metadata[key].id = key
        environment.stat_metadata[key].name = name
        environment.stats.add(metadata_id=key, uint64_value=value)
    return bytes(space.SerializeToString())


def answer(space: bytes, *, empty: bool = False) -> bytes:
    """A ProfileResponse around a serialised XSpace."""
    response = message("ProfileResponse")(empty_trace=empty)
    response.xspace.ParseFromString(space)
    return bytes(response.SerializeToString())


@asynccontextmanager
async def plain_tcp(reply: bytes = b"") -> AsyncIterator[int]:
    """Serve a port without gRPC: it sends `reply` after the first bytes and hangs up; if empty, it sends nothing."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(4096) and not reply:
            pass
        writer.write(reply)
        await writer.drain()

    async with listening(serve) as port:
        yield port
