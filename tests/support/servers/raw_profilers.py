"""Profiler servers that speak HTTP/2 frame by frame, to send what no real server sends."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.capture.http2 import FrameFlag, FrameKind, frame, header_block, settings
from support.servers.stream_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

Answer: TypeAlias = "Callable[[asyncio.StreamWriter, int], Awaitable[None]]"
"""Writes the response of a Profile call to the stream with this number."""

OK = header_block([(b":status", b"200"), (b"content-type", b"application/grpc")])


def headers(stream: int) -> bytes:
    """Return the headers of a response that goes on."""
    return frame(FrameKind.HEADERS, flags=FrameFlag.END_HEADERS, stream=stream, payload=OK)


def status(stream: int, code: int, details: bytes = b"") -> bytes:
    """Return a response of headers only."""
    block = OK + header_block([(b"grpc-status", b"%d" % code), (b"grpc-message", details)])
    return frame(FrameKind.HEADERS, flags=FrameFlag.END_HEADERS | FrameFlag.END_STREAM, stream=stream, payload=block)


def prefix(size: int) -> bytes:
    """Return the bytes that precede a message of `size` bytes."""
    return b"\0" + size.to_bytes(4, "big")


def dripping(size: int) -> Answer:
    """Announce a response of `size` bytes and send one byte of it again and again."""

    async def answer(writer: asyncio.StreamWriter, stream: int) -> None:
        writer.write(headers(stream) + frame(FrameKind.DATA, stream=stream, payload=prefix(size)))
        while True:
            await asyncio.sleep(0.05)
            writer.write(frame(FrameKind.DATA, stream=stream, payload=b"x"))
            await writer.drain()

    return answer


def sending(*frames: Callable[[int], bytes]) -> Answer:
    """Send frames, each made for the stream, then nothing."""

    async def answer(writer: asyncio.StreamWriter, stream: int) -> None:
        for make in frames:
            writer.write(make(stream))
            await writer.drain()

    return answer


def flooding(make: Callable[[int], bytes]) -> Answer:
    """Send a frame without end."""

    async def answer(writer: asyncio.StreamWriter, stream: int) -> None:
        while True:
            writer.write(make(stream) * 100)
            await writer.drain()

    return answer


async def _serve(answer: Answer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    received = b""
    while data := await reader.read(4096):
        received += data
        if b"GetSnapshot" in received:
            received = b""
            writer.write(status(1, 5, b"No continuous profiling session found."))
        if b"/Profile" in received:
            await answer(writer, 3)
            await asyncio.Event().wait()


@asynccontextmanager
async def raw_profiler(answer: Answer) -> AsyncIterator[int]:
    """Serve a profiler on a port of 127.0.0.1; it reads nothing after a Profile call."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(settings({}))
        await _serve(answer, reader, writer)

    async with listening(serve) as port:
        yield port
