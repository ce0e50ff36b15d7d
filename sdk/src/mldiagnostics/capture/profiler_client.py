"""The client of a profiler server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mldiagnostics.capture.deadline import TIMEOUTS, Deadline
from mldiagnostics.capture.grpc_call import Call, CallError
from mldiagnostics.capture.grpc_connection import GrpcConnection
from mldiagnostics.capture.messages import (
    GET_SNAPSHOT,
    PROFILE,
    START_CONTINUOUS,
    STOP_CONTINUOUS,
    TERMINATE,
    UNREADABLE,
    no_tracers_request,
    terminate_request,
)
from mldiagnostics.capture.model import LEAST_PROGRESS_BYTES, Target

_AHEAD_BYTES = 16 * 1024 * 1024


class Stalled(Exception):
    """A response stopped arriving, or arrived too slowly."""


class ProfilerClient:
    """Client of one profiler server; connects on the first call.

    Use it with `contextlib.aclosing`. Methods raise `CallError`.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._connection: GrpcConnection | None = None

    async def aclose(self) -> None:
        """Close the connection and cancel its calls."""
        if self._connection:
            await self._connection.aclose()

    async def knows_snapshots(self, *, timeout_s: float) -> bool:
        """Return whether the server has GetSnapshot, without taking a snapshot.

        A snapshot empties the buffer of a continuous recording, which belongs to the user of the process.
        """
        try:
            async with self._call(GET_SNAPSHOT, UNREADABLE, timeout_s=timeout_s) as call:
                await call.size()
        except CallError as error:
            if error.code == "UNIMPLEMENTED":
                return False
            is_unread = error.code == "INTERNAL" and not error.details
            if not is_unread and error.code != "NOT_FOUND":  # from servers that do not parse it
                raise
        return True

    async def terminate(self, session: str, *, timeout_s: float) -> None:
        """Stop the recording of a session; the server remembers its id in any case."""
        async with self._call(TERMINATE, terminate_request(session), timeout_s=timeout_s) as call:
            await call.wait_ended()

    async def records_continuously(self, *, timeout_s: float) -> bool:
        """Return whether the session of a busy server is a continuous recording.

        Servers refuse a second one with a code of its own, and have no other sign of it. If the session has ended
        meanwhile, one starts, without tracers, and is stopped at once.
        """
        try:
            async with self._call(START_CONTINUOUS, no_tracers_request(), timeout_s=timeout_s) as call:
                await call.wait_ended()
        except CallError as error:
            return error.code == "ALREADY_EXISTS"
        async with self._call(STOP_CONTINUOUS, b"", timeout_s=timeout_s) as call:
            await call.wait_ended()
        return False

    @asynccontextmanager
    async def snapshot(self, *, timeout_s: float) -> AsyncIterator["ProfileCall"]:
        """Take the events of a continuous recording out of its buffer."""
        async with self._call(GET_SNAPSHOT, b"", timeout_s=timeout_s) as call:
            yield ProfileCall(call)

    @asynccontextmanager
    async def profile(self, request: bytes, *, timeout_s: float) -> AsyncIterator["ProfileCall"]:
        """Start a capture; leaving the context cancels it."""
        async with self._call(PROFILE, request, timeout_s=timeout_s) as call:
            yield ProfileCall(call)

    @asynccontextmanager
    async def _call(self, path: str, request: bytes, *, timeout_s: float) -> AsyncIterator[Call]:
        deadline = Deadline(timeout_s)
        connection = await self._connected(deadline)
        call = connection.call(path, request, timeout_s=deadline.left_s())
        expiry = deadline.call(lambda: call.fail("DEADLINE_EXCEEDED", "no response in time"))
        try:
            yield call
        finally:
            expiry.cancel()
            call.cancel()

    async def _connected(self, deadline: Deadline) -> GrpcConnection:
        if self._connection is None or not self._connection.takes_calls:
            target = self._target
            try:
                self._connection = await deadline.bound(
                    GrpcConnection.open(target.host, target.port, authority=target.address)
                )
            except TIMEOUTS:
                raise CallError("DEADLINE_EXCEEDED", "no connection in time") from None
        return self._connection


class ProfileCall:
    """A running Profile or GetSnapshot call.

    Its response stays on the server until it is read.
    """

    def __init__(self, call: Call) -> None:
        self._call = call

    async def finished(self) -> int:
        """Wait until the response starts; return its length in bytes.

        Raises:
            CallError: the call has failed. A later failure raises in `read`.
        """
        return await self._call.size()

    async def read(self, body: memoryview, *, period_s: float) -> None:
        """Read the whole response into `body`, which has its length.

        Raises:
            CallError: the call has failed.
            Stalled: less than `LEAST_PROGRESS_BYTES` arrived in a period of `period_s` seconds.
        """
        call = self._call
        call.receive_into(body)
        try:
            while call.received < len(body):
                call.grant(_AHEAD_BYTES)
                await call.wait_received(min(call.received + LEAST_PROGRESS_BYTES, len(body)), timeout_s=period_s)
            await call.wait_ended(timeout_s=period_s)
        except TIMEOUTS:
            raise Stalled from None
