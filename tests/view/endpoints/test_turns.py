"""Clients that send bodies slowly, and answers that take long: others are served meanwhile."""

from __future__ import annotations

import asyncio
import gc
import socket
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest
from aiohttp import web
from mldiagnostics_kube.serving.connections import listen
from mldiagnostics_view.endpoints import turns
from mldiagnostics_view.endpoints.bodies import Body
from mldiagnostics_view.endpoints.delivery import ResponseDelivery, accepting
from mldiagnostics_view.endpoints.problems import problems
from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

DEADLINE_S = 120
SENDERS = 300
"""More than requests at a time, and more than connections."""
POST = (
    b"POST /api/runs/runs/a/captures HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
    b"Content-Type: application/json\r\n"
)
HALF = POST + b"Content-Length: 90000\r\n\r\n{"


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    assets = {"index.html": Body(b"<!doctype html>", "text/html")}
    async with serving(Settings(roots=(str(tmp_path),), port=0), assets) as url, asyncio.timeout(DEADLINE_S):
        yield int(url.rstrip("/").rpartition(":")[2])


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as client:
        yield client


async def sender(stack: AsyncExitStack, port: int, sent: bytes) -> socket.socket:
    """Send the beginning of a request and leave the connection open."""
    opened = stack.enter_context(socket.socket())
    opened.setblocking(False)  # noqa: FBT003 - the socket's own signature
    loop = asyncio.get_running_loop()
    await loop.sock_connect(opened, ("127.0.0.1", port))
    await loop.sock_sendall(opened, sent)
    return opened


async def answer_to(port: int, sent: bytes) -> bytes:
    """Return what the server sends before it closes the connection."""
    async with AsyncExitStack() as stack:
        opened, answer = await sender(stack, port, sent), b""
        with suppress(ConnectionError):  # the server has closed it with bytes unread
            while part := await asyncio.get_running_loop().sock_recv(opened, 65536):
                answer += part
        return answer


async def test_half_sent_bodies_keep_nobody_waiting(
    port: int, client: aiohttp.ClientSession, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"http://127.0.0.1:{port}/"
    async with AsyncExitStack() as stack:
        for count in range(1, SENDERS + 1):
            await sender(stack, port, HALF)
            if count % 50 == 0:
                async with client.get(f"{url}api/runs") as response:
                    assert response.status == 200
        async with client.post(f"{url}api/runs/runs/a/captures", json={}, headers={"Origin": url.rstrip("/")}) as made:
            assert made.status != 503
    async with client.get(url) as response:
        assert response.status == 200
    gc.collect()  # a failed task without a reader of its failure is logged now
    assert not caplog.records, "clients that leave are not errors"


async def test_a_body_that_does_not_arrive_says_so(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "READ_BODY_S", 0.2)
    answer = await answer_to(port, HALF)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"The body took more than 0.2 s." in answer


async def test_a_client_that_leaves_before_its_request_is_read_is_not_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_request = web.Application._make_request  # between the head and the task that reads the body

    def leave(app: web.Application, message: Any, payload: Any, protocol: Any, *others: Any) -> web.Request:
        protocol.transport.abort()
        return make_request(app, message, payload, protocol, *others)

    monkeypatch.setattr(web.Application, "_make_request", leave)
    async with serving(Settings(roots=(str(tmp_path),), port=0), {}) as url, asyncio.timeout(DEADLINE_S):
        assert await answer_to(int(url.rstrip("/").rpartition(":")[2]), HALF) == b""
    assert not caplog.records


async def test_a_malformed_body_is_the_fault_of_its_client(port: int, caplog: pytest.LogCaptureFixture) -> None:
    answer = await answer_to(port, POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")
    assert b" 400 " in answer.splitlines()[0]
    assert not caplog.records


async def test_an_answer_that_takes_too_long_says_so(
    client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "REQUEST_S", 0.2)

    async def never(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    app = web.Application(
        middlewares=[ResponseDelivery().middleware, problems, turns.RequestTurns(lambda _: False).middleware]
    )
    app.router.add_get("/", never)
    async with (
        accepting(app, listen(0, "127.0.0.1")) as port,
        client.get(f"http://127.0.0.1:{port}/") as response,
    ):
        assert response.status == 504
        assert "did not respond within" in (await response.json(content_type=None))["detail"]
