"""Frames of HTTP/2: however the bytes are cut, the same content arrives."""

from itertools import pairwise

import pytest
from hpack import Decoder
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.http2 import (
    FrameFlag,
    FrameKind,
    FrameReader,
    ProtocolError,
    content,
    frame,
    header_block,
)

PAYLOADS = st.lists(
    st.tuples(st.sampled_from([FrameKind.DATA, FrameKind.PING, FrameKind.HEADERS]), st.binary(max_size=40)), max_size=8
)


def read(data: bytes, cuts: list[int]) -> list[tuple[int, bytes]]:
    """Return the frames; parts of content are joined."""
    reader, frames = FrameReader(), list[tuple[int, bytes]]()
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, end in pairwise(bounds):
        for part in reader.feed(memoryview(data)[start:end]):
            if part.kind == FrameKind.DATA and frames and frames[-1][0] == FrameKind.DATA:
                frames[-1] = (FrameKind.DATA, frames[-1][1] + bytes(part.payload))
            else:
                frames.append((part.kind, bytes(part.payload)))
    return frames


@given(PAYLOADS, st.lists(st.integers(0, 1000), max_size=20))
def test_property_cuts_do_not_change_what_is_read(payloads: list[tuple[FrameKind, bytes]], cuts: list[int]) -> None:
    sent = b"".join(frame(kind, stream=1, payload=payload) for kind, payload in payloads)
    assert read(sent, cuts) == read(sent, [])
    assert b"".join(payload for _, payload in read(sent, cuts)) == b"".join(payload for _, payload in payloads)


@given(st.binary(max_size=300))
def test_property_any_bytes_are_read_or_rejected(data: bytes) -> None:
    try:
        assert sum(len(payload) for _, payload in read(data, [7])) <= len(data)
    except ProtocolError:
        return


@given(st.binary(max_size=50_000))
def test_property_a_request_is_sent_whole(request: bytes) -> None:
    (received,) = read(content(1, request), [])
    assert received == (FrameKind.DATA, request)


def test_padding_and_weights_are_not_content() -> None:
    padded = frame(FrameKind.DATA, flags=FrameFlag.PADDED, stream=1, payload=b"\x03abc\0\0\0")
    weighted = frame(
        FrameKind.HEADERS, flags=FrameFlag.PADDED | FrameFlag.PRIORITY, stream=1, payload=b"\x01\0\0\0\0\x10xyz\0"
    )
    assert read(padded + weighted, [5]) == [(FrameKind.DATA, b"abc"), (FrameKind.HEADERS, b"xyz")]


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad Request\r\n\r\n", frame(FrameKind.DATA, flags=FrameFlag.PADDED, stream=1, payload=b"\x09abc")],
    ids=["HTTP/1.1", "padding only"],
)
def test_what_is_not_http2_is_rejected(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(data, [])


@given(st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.binary(max_size=400)), max_size=5))
def test_property_headers_are_read_by_another_implementation(headers: list[tuple[bytes, bytes]]) -> None:
    decoded = Decoder().decode(header_block(headers), raw=True)
    assert [(bytes(name), bytes(value)) for name, value, *_ in decoded] == headers
