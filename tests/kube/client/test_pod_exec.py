"""Programs in containers, through servers that do not end them as a kubelet does."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from mldiagnostics_kube.client import pod_exec
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import InvalidResponse, Unavailable
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.client.pod_exec import PROTOCOL, PodContainer, ProgramFailed, run_in_container
from mldiagnostics_kube.serving.connections import listen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEADLINE_S = 60
CONTAINER = PodContainer("ml", "a", "c")


@asynccontextmanager
async def printing(*messages: bytes, stays: bool = False) -> AsyncIterator[ApiClient]:
    """A client of a server whose programs send these messages; each begins with its channel."""

    async def program(request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(protocols=(PROTOCOL,))
        await socket.prepare(request)
        for message in messages:
            await socket.send_bytes(message)
        if stays:
            await socket.receive()
        await socket.close()
        return socket

    app = web.Application()
    app.router.add_get("/{path:.*}", program)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    listener = listen(0, "127.0.0.1")
    await web.SockSite(runner, listener).start()
    client = ApiClient(Credentials(f"http://127.0.0.1:{listener.getsockname()[1]}", fixed("")))
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield client
    finally:
        await client.aclose()
        await runner.cleanup()


async def test_the_output_of_a_program_arrives() -> None:
    out = bytearray()
    async with printing(b"", b"\x01ab", b"\x02noise", b"\x01c", b'\x03{"status": "Success"}') as client:
        await run_in_container(client, CONTAINER, ["p"], out.extend)
    assert out == b"abc"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "3"}]}}, 3),
        ({"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "9" * 5000}]}}, None),
        ({"status": "Failure", "details": {"causes": None}}, None),
        ({}, None),
    ],
)
async def test_a_program_that_fails_has_its_code_and_last_line(status: object, code: int | None) -> None:
    async with printing(b"\x02first\nlast\n", b"\x03" + json.dumps(status).encode()) as client:
        with pytest.raises(ProgramFailed, match=r"^last$") as failed:
            await run_in_container(client, CONTAINER, ["p"], len)
    assert failed.value.code == code


@pytest.mark.parametrize(
    "status", [b"x", b"[]", b"7", b"{" * 9999, b'{"status": 7}', b'{"details": {"causes": [7]}}', b"\xff"]
)
async def test_an_end_that_is_not_a_status_is_named(status: bytes) -> None:
    async with printing(b"\x03" + status) as client:
        with pytest.raises(InvalidResponse, match="the end of the program is not a Status"):
            await run_in_container(client, CONTAINER, ["p"], len)


async def test_a_connection_without_an_end_broke() -> None:
    async with printing(b"\x01half") as client:
        with pytest.raises(Unavailable, match="the connection to the program broke"):
            await run_in_container(client, CONTAINER, ["p"], len)


async def test_a_program_that_prints_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_exec, "SILENCE_S", 0.2)
    async with printing(b"\x01half", stays=True) as client:
        with pytest.raises(Unavailable, match=r"the program printed nothing for 0\.2 s"):
            await run_in_container(client, CONTAINER, ["p"], len)
