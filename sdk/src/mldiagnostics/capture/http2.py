"""Frames of HTTP/2, as far as a client needs them; pure.

https://www.rfc-editor.org/rfc/rfc9113. Content passes through without being collected; all other frames are small.
"""

from collections.abc import Iterator, Sequence
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CANCEL = 8
"""The error code of a stream that nobody needs any more."""

_HEADER = Struct(">BHBBL")
"""Length in two parts, kind, flags and stream."""
_FRAME_BYTES = 16 * 1024
"""The longest frame to send, and the longest to receive other than content."""
_WEIGHT_BYTES = 5
_STREAM_MASK = 0x7FFFFFFF


class FrameKind(IntEnum):
    """Types of frames; others are ignored."""

    DATA = 0
    HEADERS = 1
    RST_STREAM = 3
    SETTINGS = 4
    PUSH_PROMISE = 5
    PING = 6
    GOAWAY = 7
    WINDOW_UPDATE = 8
    CONTINUATION = 9


class FrameFlag(IntEnum):
    """Flags of frames; ACK is END_STREAM of settings and pings."""

    ACK = 0x1
    END_STREAM = 0x1
    END_HEADERS = 0x4
    PADDED = 0x8
    PRIORITY = 0x20


class Http2Setting(IntEnum):
    """Settings that a client sends."""

    HEADER_TABLE_SIZE = 1
    ENABLE_PUSH = 2
    INITIAL_WINDOW_SIZE = 4
    MAX_FRAME_SIZE = 5
    MAX_HEADER_LIST_SIZE = 6


class ProtocolError(Exception):
    """The peer does not speak HTTP/2, or breaks its rules."""


class Frame(NamedTuple):
    """A frame, or a part of a DATA frame, of which the last part has the flags.

    `flow_bytes` count for flow control: the content and its padding.
    """

    kind: int
    flags: int
    stream: int
    payload: bytes | memoryview
    flow_bytes: int = 0


class FrameReader:
    """Cuts received bytes into frames."""

    def __init__(self) -> None:
        self._pending = b""
        self._data_left = 0
        self._flags = self._stream = 0

    def feed(self, data: memoryview) -> Iterator[Frame]:
        """Yield the frames that `data` completes. Raises `ProtocolError`."""
        if self._pending:
            data = memoryview(self._pending + data)
        at = 0
        while at < len(data):
            if self._data_left:
                part = data[at : at + self._data_left]
                at += len(part)
                self._data_left -= len(part)
                yield Frame(FrameKind.DATA, 0 if self._data_left else self._flags, self._stream, part, len(part))
                continue
            content_at = at + _HEADER.size
            if content_at > len(data):
                break
            high, low, kind, flags, stream = _HEADER.unpack_from(data, at)
            length, stream = high << 16 | low, stream & _STREAM_MASK
            if kind == FrameKind.DATA and not flags & FrameFlag.PADDED and length:
                self._flags, self._stream, self._data_left = flags, stream, length
                at = content_at
                continue
            if length > _FRAME_BYTES:
                raise ProtocolError(f"a frame of {length} bytes")
            if content_at + length > len(data):
                break
            at = content_at + length
            content = _content(kind, flags, bytes(data[content_at:at]))
            yield Frame(kind, flags, stream, content, length if kind == FrameKind.DATA else 0)
        self._pending = bytes(data[at:])


def _content(kind: int, flags: int, payload: bytes) -> bytes:
    """Return the payload without padding and weights."""
    if kind not in {FrameKind.DATA, FrameKind.HEADERS}:
        return payload
    padding = 0
    if flags & FrameFlag.PADDED:
        padding, payload = (payload[0], payload[1:]) if payload else (1, b"")
    if kind == FrameKind.HEADERS and flags & FrameFlag.PRIORITY:
        payload = payload[_WEIGHT_BYTES:]
    if padding > len(payload):
        raise ProtocolError("a frame of padding only")
    return payload[: len(payload) - padding]


def frame(kind: FrameKind, *, flags: int = 0, stream: int = 0, payload: bytes = b"") -> bytes:
    """Encode a frame."""
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def content(stream: int, payload: bytes) -> bytes:
    """Encode the whole content of a request."""
    parts = [payload[start : start + _FRAME_BYTES] for start in range(0, len(payload), _FRAME_BYTES)] or [b""]
    ends = [FrameFlag.END_STREAM if part is parts[-1] else 0 for part in parts]
    return b"".join(
        frame(FrameKind.DATA, flags=end, stream=stream, payload=part) for part, end in zip(parts, ends, strict=True)
    )


def settings(values: dict[Http2Setting, int]) -> bytes:
    """Encode settings."""
    payload = b"".join(key.to_bytes(2, "big") + value.to_bytes(4, "big") for key, value in values.items())
    return frame(FrameKind.SETTINGS, payload=payload)


def window_update(stream: int, count: int) -> bytes:
    """Encode that the peer may send `count` bytes more; stream 0: the connection."""
    return frame(FrameKind.WINDOW_UPDATE, stream=stream, payload=count.to_bytes(4, "big"))


def header_block(headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Encode headers without compression, which would cost more time than it saves."""
    return b"".join(b"\0" + _string(name) + _string(value) for name, value in headers)


def _string(value: bytes) -> bytes:
    length, encoded = len(value), bytearray()
    if length < 0x7F:
        encoded.append(length)
    else:
        encoded.append(0x7F)
        length -= 0x7F
        while length > 0x7F:
            encoded.append(length & 0x7F | 0x80)
            length >>= 7
        encoded.append(length)
    return bytes(encoded) + value
