"""gRPC calls over HTTP/2 whose responses never exceed the memory of the caller.

grpcio reads a response of unknown length at once and holds it three times. Here the length is known before the bytes
are: the window of a stream lets the server send the first bytes only, until the caller grants the rest. Responses are
requested without compression, so that their length is the memory that they need.
"""

import asyncio
import threading
from functools import lru_cache
from typing import cast

from mldiagnostics.capture.grpc_call import PREFIX_BYTES, UNGRANTED_BYTES, Call, CallError
from mldiagnostics.capture.http2 import (
    CANCEL,
    PREFACE,
    Frame,
    FrameFlag,
    FrameKind,
    FrameReader,
    Http2Setting,
    ProtocolError,
    content,
    frame,
    header_block,
    settings,
    window_update,
)
from mldiagnostics.errors import MissingExtraError

try:
    from hpack import Decoder, HPACKError
except ModuleNotFoundError as error:
    raise MissingExtraError(extra="capture", needed_for="capturing profiles") from error

_CONNECTION_WINDOW_BYTES = 64 * 1024 * 1024
_CONTENT_FRAME_BYTES = 1024 * 1024
_RECEIVE_BYTES = 256 * 1024
_HEADERS_BYTES = 64 * 1024
_OVERHEAD_BYTES = 128 * 1024
"""Bound on received bytes that are not content, beyond as many as the content has.

It covers headers, settings and pings of a capture of hours, and stops a server that only sends those.
"""
_RESET_CODES = {7: "UNAVAILABLE", CANCEL: "CANCELLED", 11: "RESOURCE_EXHAUSTED"}
_FIRST_HEADERS = header_block(((b":method", b"POST"), (b":scheme", b"http")))
_LAST_HEADERS = header_block(
    ((b"te", b"trailers"), (b"content-type", b"application/grpc"), (b"user-agent", b"mldiagnostics"))
)
_OPENING = b"".join(
    (
        PREFACE,
        settings(
            {
                Http2Setting.HEADER_TABLE_SIZE: 0,  # so no block refers to another one
                Http2Setting.ENABLE_PUSH: 0,
                Http2Setting.INITIAL_WINDOW_SIZE: UNGRANTED_BYTES,
                Http2Setting.MAX_FRAME_SIZE: _CONTENT_FRAME_BYTES,
                Http2Setting.MAX_HEADER_LIST_SIZE: _HEADERS_BYTES,
            }
        ),
        window_update(0, _CONNECTION_WINDOW_BYTES),
    )
)


@lru_cache(maxsize=64)  # servers of one kind send the same blocks
def _decoded(block: bytes) -> dict[bytes, bytes]:
    headers = Decoder(max_header_list_size=_HEADERS_BYTES).decode(block, raw=True)
    return {bytes(name): bytes(value) for name, value, *_ in headers}


class _ReceiveBuffer(threading.local):
    """The last received bytes: one buffer for all connections of a thread."""

    def __init__(self) -> None:
        self.view = memoryview(bytearray(_RECEIVE_BYTES))


_receive_buffer = _ReceiveBuffer()


# typing.override is newer than Python 3.10.
class GrpcConnection(asyncio.BufferedProtocol):
    """A connection to one server; `GrpcConnection.open` makes one."""

    def __init__(self, authority: str) -> None:
        self._authority = authority.encode()
        self._calls: dict[int, Call] = {}
        self._next_stream = 1
        self._reader = FrameReader()
        self._headers: tuple[Frame, bytearray] | None = None
        self._overhead_left = _OVERHEAD_BYTES
        self._unacknowledged = 0
        self._unsent = bytearray()
        self._is_leaving = False
        self._transport: asyncio.Transport
        self._closed = asyncio.Event()

    @classmethod
    async def open(cls, host: str, port: int, *, authority: str) -> "GrpcConnection":
        """Connect to a server. Raises `CallError`."""
        try:
            _, connection = await asyncio.get_running_loop().create_connection(lambda: cls(authority), host, port)
        except (OSError, UnicodeError) as error:  # UnicodeError: a label of the name is too long
            raise CallError("UNAVAILABLE", f"cannot connect: {error}") from None
        return connection

    @property
    def takes_calls(self) -> bool:
        """Whether the connection is open and the server is not about to close it."""
        return not self._is_leaving and not self._transport.is_closing()

    async def aclose(self) -> None:
        """Close the connection; its calls fail."""
        self._transport.abort()
        await self._closed.wait()

    def call(self, path: str, request: bytes, *, timeout_s: float) -> Call:
        """Start a call."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        call = self._calls[stream] = Call(self, stream)
        own = (
            (b":path", path.encode()),
            (b":authority", self._authority),
            (b"grpc-timeout", b"%dm" % min(int(timeout_s * 1000) + 1, 99_999_999)),
        )
        block = _FIRST_HEADERS + header_block(own) + _LAST_HEADERS
        self.send(frame(FrameKind.HEADERS, flags=FrameFlag.END_HEADERS, stream=stream, payload=block))
        self.send(content(stream, b"\0" + len(request).to_bytes(PREFIX_BYTES - 1, "big") + request))
        return call

    def send(self, data: bytes) -> None:
        """Send at the end of this turn of the loop, all frames in one system call."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent += data

    def forget(self, stream: int, *, reset: bool) -> None:
        """Drop a call, and reset its stream unless the response has ended."""
        self._calls.pop(stream, None)
        if reset:
            self.send(frame(FrameKind.RST_STREAM, stream=stream, payload=CANCEL.to_bytes(4, "big")))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:  # type: ignore[explicit-override]
        """Start HTTP/2."""
        self._transport = cast("asyncio.Transport", transport)
        self.send(_OPENING)

    def get_buffer(self, sizehint: int) -> memoryview:  # type: ignore[explicit-override]
        """Return the memory to receive into."""
        del sizehint
        return _receive_buffer.view

    def buffer_updated(self, nbytes: int) -> None:  # type: ignore[explicit-override]
        """Pass the received bytes on to their calls."""
        self._overhead_left -= nbytes
        try:
            for part in self._reader.feed(_receive_buffer.view[:nbytes]):
                self._on_frame(part)
        except (ProtocolError, HPACKError):
            self._break_off("the server does not speak HTTP/2 correctly")
        if self._overhead_left < 0:
            self._break_off("the server sends headers and control frames without content")

    def pause_writing(self) -> None:  # type: ignore[explicit-override]
        """Read nothing from a server that reads nothing: replies would pile up."""
        self._transport.pause_reading()

    def resume_writing(self) -> None:  # type: ignore[explicit-override]
        """Read on."""
        if not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # type: ignore[explicit-override]
        """Fail the calls that wait."""
        self._fail_calls(f"the connection is lost: {exc or 'closed by the server'}")
        self._closed.set()

    def _on_frame(self, part: Frame) -> None:
        call = self._calls.get(part.stream)
        if self._headers and part.kind != FrameKind.CONTINUATION:
            raise ProtocolError("an interrupted block of headers")
        if part.kind == FrameKind.DATA:
            self._overhead_left += 2 * len(part.payload)
            self._acknowledge(part.flow_bytes)
            if call:
                call.on_data(part)
                if part.flags & FrameFlag.END_STREAM:
                    call.on_end()
        elif part.kind in {FrameKind.HEADERS, FrameKind.CONTINUATION}:
            self._on_headers(part)
        elif part.kind == FrameKind.RST_STREAM and call:
            code = _RESET_CODES.get(int.from_bytes(part.payload, "big"), "INTERNAL")
            call.fail(code, "the server reset the call")
        else:
            self._on_control(part)

    def _on_control(self, part: Frame) -> None:
        if part.kind == FrameKind.SETTINGS and not part.flags & FrameFlag.ACK:
            self.send(frame(FrameKind.SETTINGS, flags=FrameFlag.ACK))
        elif part.kind == FrameKind.PING and not part.flags & FrameFlag.ACK:
            self.send(frame(FrameKind.PING, flags=FrameFlag.ACK, payload=bytes(part.payload)))
        elif part.kind == FrameKind.GOAWAY:
            self._on_goaway(bytes(part.payload))
        elif part.kind == FrameKind.PUSH_PROMISE:
            raise ProtocolError("a push, which is disabled")

    def _on_headers(self, part: Frame) -> None:
        if part.kind == FrameKind.HEADERS:
            self._headers = part, bytearray()
        if self._headers is None:
            raise ProtocolError("a continuation of nothing")
        first, block = self._headers
        block += part.payload
        if len(block) > _HEADERS_BYTES:
            raise ProtocolError("a block of headers without end")
        if not part.flags & FrameFlag.END_HEADERS:
            return
        self._headers = None
        call = self._calls.get(first.stream)
        if call:
            call.on_headers(_decoded(bytes(block)))
            if first.flags & FrameFlag.END_STREAM:
                call.on_end()

    def _on_goaway(self, payload: bytes) -> None:
        """Take no calls any more; those up to the last stream that the server names go on."""
        self._is_leaving = True
        last = int.from_bytes(payload[:4], "big")
        for stream, call in self._calls.items():
            if stream > last or any(payload[4:8]):
                call.fail("UNAVAILABLE", "the server closed the connection")

    def _acknowledge(self, count: int) -> None:
        """Keep the window of the connection open: those of the streams are the bound."""
        self._unacknowledged += count
        if self._unacknowledged > _CONNECTION_WINDOW_BYTES // 2:
            self.send(window_update(0, self._unacknowledged))
            self._unacknowledged = 0

    def _break_off(self, problem: str) -> None:
        self._fail_calls(problem)
        self._transport.abort()

    def _fail_calls(self, problem: str) -> None:
        for call in self._calls.values():
            call.fail("UNAVAILABLE", problem)

    def _flush(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(bytes(self._unsent))
        self._unsent.clear()
