"""The response to one gRPC call, received as the caller has memory for it."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote_to_bytes

from mldiagnostics.capture.http2 import ProtocolError, window_update
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.capture.http2 import Frame

UNGRANTED_BYTES = 4 * 1024
"""Bytes that a server may send without a grant: a small response arrives at once."""

PREFIX_BYTES = 5
"""Length of the prefix of a message: a flag for compression, and its length."""

_DETAILS_LENGTH = 300
_CODES = (
    *("OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS"),
    *("PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED"),
    *("INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"),
)
_OK_STATUS = b"200"


class CallSender(Protocol):
    """The connection of a call."""

    def send(self, data: bytes) -> None:
        """Send frames."""

    def forget(self, stream: int, *, reset: bool) -> None:
        """Drop a call, and reset its stream unless the response has ended."""


class CallError(Exception):
    """A call failed; `code` and `details` are those of the gRPC status.

    `details` may come from the server: they are cut, and control characters are escaped.
    """

    def __init__(self, code: str, details: str) -> None:
        self.code = code
        self.details = printable(details if len(details) <= _DETAILS_LENGTH else f"{details[: _DETAILS_LENGTH - 1]}…")
        super().__init__(f"{code}: {self.details}")


class Call:
    """The response to one call; one task may wait for it.

    Awaiting methods raise `CallError` if the call fails, and `asyncio.TimeoutError` after their time.
    """

    def __init__(self, connection: CallSender, stream: int) -> None:
        self.received = 0
        """Bytes of the body in its memory."""
        self._connection = connection
        self._stream = stream
        self._status: dict[bytes, bytes] = {}
        self._first = bytearray()
        self._body: memoryview | None = None
        self._length = 0
        self._window = UNGRANTED_BYTES
        self._ended = False
        self._failure: tuple[str, str] | None = None
        self._waiter: tuple[Callable[[], bool], asyncio.Future[None]] | None = None

    async def size(self) -> int:
        """Return the length of the response in bytes as soon as it starts."""
        await self._until(lambda: self._ended or len(self._first) >= PREFIX_BYTES)
        if len(self._first) < PREFIX_BYTES:
            self._check_status()
            raise CallError("INTERNAL", "the response has no message")
        if self._first[0]:
            raise CallError("INTERNAL", "the response is compressed, which was not requested")
        return int.from_bytes(self._first[1:PREFIX_BYTES], "big")

    def receive_into(self, body: memoryview) -> None:
        """Write the response into `body`, which has its length."""
        self._body, self._length = body, len(body)
        self._write(self._first[PREFIX_BYTES:])
        del self._first[PREFIX_BYTES:]

    def grant(self, ahead: int) -> None:
        """Let the server send up to `ahead` bytes more than were received."""
        missing = min(ahead, self._length - self.received) - self._window
        if missing > 0 and not self._ended:
            self._window += missing
            self._connection.send(window_update(self._stream, missing))

    async def wait_received(self, count: int, *, timeout_s: float) -> None:
        """Return when `count` bytes of the body were received."""
        await self._until(lambda: self._ended or self.received >= count, timeout_s)
        if self.received < count:
            self._check_status()
            raise CallError("INTERNAL", "the response ended before its message")

    async def wait_ended(self, *, timeout_s: float = math.inf) -> None:
        """Return when the call has succeeded."""
        await self._until(lambda: self._ended, timeout_s)
        self._check_status()

    def cancel(self) -> None:
        """Cancel the call unless it has ended."""
        self._body = None
        self._connection.forget(self._stream, reset=not self._ended)

    def fail(self, code: str, details: str) -> None:
        """End the call with an error."""
        if self._failure is None and not self._ended:
            self._failure = code, details
            self._wake()

    def on_headers(self, headers: Mapping[bytes, bytes]) -> None:
        """Take headers or trailers."""
        self._status.update(headers)

    def on_data(self, part: Frame) -> None:
        """Take a part of the content. Raises `ProtocolError`."""
        self._window -= part.flow_bytes
        if self._window < 0:
            raise ProtocolError("more content than granted")
        self._write(part.payload)
        self._wake()

    def on_end(self) -> None:
        """Take the end of the response."""
        self._ended = True
        self._wake()

    def _write(self, data: bytes | bytearray | memoryview) -> None:
        if self._body is None:
            self._first += data  # at most the bytes that need no grant
            return
        end = self.received + len(data)
        if end > len(self._body):
            self.fail("INTERNAL", "the response is longer than its message")
            return
        self._body[self.received : end] = data
        self.received = end

    async def _until(self, is_done: Callable[[], bool], timeout_s: float = math.inf) -> None:
        if not is_done() and not self._failure:
            loop = asyncio.get_running_loop()
            done = loop.create_future()
            self._waiter = is_done, done
            expiry = None if timeout_s == math.inf else loop.call_later(timeout_s, _expire, done)
            try:
                await done
            finally:
                self._waiter = None
                if expiry:
                    expiry.cancel()
        if self._failure:
            raise CallError(*self._failure)

    def _wake(self) -> None:
        if self._waiter:
            is_done, done = self._waiter
            if not done.done() and (self._failure or is_done()):
                done.set_result(None)

    def _check_status(self) -> None:
        http = self._status.get(b":status", b"")
        grpc = self._status.get(b"grpc-status")
        if grpc is None:
            problem = "no gRPC status" if http == _OK_STATUS else f"HTTP status {_text(http)}"
            raise CallError("UNKNOWN", problem)
        if grpc != b"0":
            number = int(grpc) if grpc.isdigit() and len(grpc) <= len("16") else len(_CODES)
            code = _CODES[number] if number < len(_CODES) else "UNKNOWN"
            raise CallError(code, _text(unquote_to_bytes(self._status.get(b"grpc-message", b""))))


def _expire(done: asyncio.Future[None]) -> None:
    if not done.done():
        done.set_exception(asyncio.TimeoutError())


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
