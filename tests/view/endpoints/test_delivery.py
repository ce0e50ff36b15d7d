"""Clients that read or send slowly, or open too much: others are served, and their resources come back."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from mldiagnostics_kube.serving.connection import ConnectionTimes
from mldiagnostics_kube.serving.connections import listen
from mldiagnostics_view.endpoints import delivery, live, turns
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.endpoints.problems import problems
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE_S = 120
LARGE_BYTES = 24 * 2**20
"""More than the buffers of the kernel for one connection."""
HEAD = b"GET %s HTTP/1.1\r\nHost: localhost\r\n"


@cache
def assets() -> dict[str, Body]:
    large = Body(os.urandom(LARGE_BYTES), "text/javascript")
    return {"index.html": Body(b"<!doctype html>", "text/html"), "large.js": large}


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    async with serving(Settings(roots=(str(tmp_path),), port=0), assets()) as url, asyncio.timeout(DEADLINE_S):
        yield url


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


@asynccontextmanager
async def connection(url: str, sent: bytes) -> AsyncIterator[asyncio.StreamReader]:
    """A connection with a small buffer, which has sent something and does not read by itself."""
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        opened.setblocking(False)  # noqa: FBT003 - the socket's own signature
        port = int(url.rstrip("/").rpartition(":")[2])
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", port))
        reader, writer = await asyncio.open_connection(sock=opened, limit=4096)
        writer.write(sent)
        yield reader
        writer.transport.abort()


async def status(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url) as response:
        return response.status


async def until(client: aiohttp.ClientSession, url: str, wanted: int) -> None:
    """Request until the status is the wanted one."""
    while await status(client, url) != wanted:
        pass


async def test_slow_heads_and_many_connections_leave_room_for_others(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(delivery, "MAX_CONNECTIONS", 4)
    monkeypatch.setattr(delivery, "_TIMES", ConnectionTimes(first_request_s=3, idle_s=2, young_s=0.1))
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        small = await stack.enter_async_context(serving(Settings(roots=(str(tmp_path),), port=0), assets()))
        slow = [await stack.enter_async_context(connection(small, HEAD % b"/")) for _ in range(12)]
        assert await status(client, small) == 200
        for each in slow:
            try:
                assert await each.read() == b""
            except ConnectionError:
                continue
        idle = await stack.enter_async_context(connection(small, HEAD % b"/" + b"\r\n"))
        assert (await idle.read()).startswith(b"HTTP/1.1 200")  # `read` ends when the server closes the connection


async def test_a_response_that_is_read_too_slowly_is_dropped(
    url: str, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "DELIVERY_S", 0.5)
    async with connection(url, HEAD % b"/assets/large.js" + b"\r\n") as slow:
        assert await slow.readline() == b"HTTP/1.1 200 OK\r\n"
        count = 0
        with suppress(ConnectionError):
            while part := await slow.read(4096):
                count += len(part)
                assert await status(client, f"{url}api/runs") == 200
        assert count < LARGE_BYTES


async def test_slow_readers_make_room_for_others(
    url: str, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "MAX_UNREAD_BYTES", LARGE_BYTES * 7 // 2)
    monkeypatch.setattr(turns, "MAX_REQUESTS", 2)
    async with AsyncExitStack() as stack:
        slow = []
        for _ in range(6):
            slow.append(await stack.enter_async_context(connection(url, HEAD % b"/assets/large.js" + b"\r\n")))
            assert await slow[-1].readline() == b"HTTP/1.1 200 OK\r\n"
        assert await status(client, f"{url}assets/large.js") == 200
        assert await status(client, f"{url}api/runs") == 200
        count = 0
        with suppress(ConnectionError):
            while part := await slow[0].read(2**16):
                count += len(part)
        assert count < LARGE_BYTES, "the oldest is given up"


async def test_slow_readers_make_room_for_connections(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(delivery, "MAX_CONNECTIONS", 4)
    async with AsyncExitStack() as stack, asyncio.timeout(DEADLINE_S):
        small = await stack.enter_async_context(serving(Settings(roots=(str(tmp_path),), port=0), assets()))
        for _ in range(4):
            slow = await stack.enter_async_context(connection(small, HEAD % b"/assets/large.js" + b"\r\n"))
            assert await slow.readline() == b"HTTP/1.1 200 OK\r\n"
        assert await status(client, f"{small}api/runs") == 200


async def test_a_client_that_leaves_is_not_an_error(
    url: str, client: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    async with connection(url, HEAD % b"/assets/large.js" + b"\r\n") as leaving:
        assert await leaving.readline() == b"HTTP/1.1 200 OK\r\n"
    assert await status(client, f"{url}assets/large.js") == 200
    assert not caplog.records


async def test_a_stream_that_is_not_read_is_closed_after_a_time(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 1)
    monkeypatch.setattr(live, "_WHILE_READING_S", 0.0)
    for write_s in (1.0, 10.0, 30.0):
        monkeypatch.setattr(live, "WRITE_S", write_s)
        if await makes_room_later(client):
            return
    pytest.fail("a stream that is not read makes room at once")


async def makes_room_later(client: aiohttp.ClientSession) -> bool:
    """Return whether a second stream waits for the end of one that is not read."""
    streams, count = live.EventStreams(), 0

    async def look() -> tuple[Any, bool]:
        nonlocal count
        count += 1
        return str(count) * 2**18, True

    async def stream(request: web.Request) -> web.StreamResponse:
        return await streams.send(request, {"run": look})

    app = web.Application(middlewares=[delivery.ResponseDelivery().middleware, problems])
    app.router.add_get("/", stream)
    async with asyncio.timeout(DEADLINE_S), delivery.accepting(app, listen(0, "127.0.0.1")) as port:
        url = f"http://127.0.0.1:{port}/"
        async with connection(url, HEAD % b"/" + b"\r\n") as slow:
            try:
                assert await slow.readline() == b"HTTP/1.1 200 OK\r\n"
            except ConnectionError:  # it was closed before
                return False
            if (first := await status(client, url)) == 200:
                return False
            assert first == 503
            await until(client, url, 200)
            looked = count
        assert looked < 1000, "it does not look while nobody reads"
    return True


async def test_streams_and_requests_have_bounds_of_their_own(
    url: str, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "MAX_STREAMS", 2)
    monkeypatch.setattr(live, "REFRESH_S", 0.05)
    monkeypatch.setattr(turns, "MAX_REQUESTS", 1)
    async with client.get(f"{url}api/live") as first, client.get(f"{url}api/live") as second:
        assert (first.status, second.status) == (200, 200)
        assert await status(client, f"{url}api/runs") == 200
        async with client.get(f"{url}api/live") as third:
            assert (third.status, (await third.json(content_type=None))["detail"]) == (
                503,
                "More than 2 pages are open; close some to follow this one.",
            )
    await until(client, f"{url}api/live", 200)


async def test_streams_end_as_whole_responses_when_the_server_ends(
    client: aiohttp.ClientSession, tmp_path: Path
) -> None:
    async with asyncio.timeout(DEADLINE_S), AsyncExitStack() as opened:
        async with serving(Settings(roots=(str(tmp_path),), port=0), assets()) as url:
            response = await opened.enter_async_context(client.get(f"{url}api/live"))
            await response.content.readuntil(b"event: runs\n")
        assert (await response.read()).startswith(b"data: ")
