"""Forwarded ports, against a server that speaks the kubelet's protocol `v4.channel.k8s.io` and echoes."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from mldiagnostics_cli.cluster.port_forward import PodPort, forwarded
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.client.pod_exec import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

PORT = 9999
HEADS = [bytes([channel]) + PORT.to_bytes(2, "little") for channel in (0, 1)]


async def portforward(request: web.Request) -> web.StreamResponse:
    """Echo the data of one connection in upper case; the pod `broken` has no listener, all but `live` are gone."""
    assert request.query["ports"] == str(PORT)
    pod = request.match_info["pod"]
    if pod not in {"live", "broken"}:
        return web.json_response({"message": f'pods "{pod}" not found'}, status=404)
    socket = web.WebSocketResponse(protocols=[PROTOCOL])
    await socket.prepare(request)
    for head in HEADS:
        await socket.send_bytes(head)
    if pod == "broken":
        await socket.send_bytes(b"\x01connection refused")
    async for message in socket:
        await socket.send_bytes(b"\x00" + message.data[1:].upper())
    return socket


@pytest.fixture
async def client() -> AsyncIterator[ApiClient]:
    app = web.Application()
    app.router.add_get("/api/v1/namespaces/ml/pods/{pod}/portforward", portforward)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    client = ApiClient(Credentials(f"http://127.0.0.1:{runner.addresses[0][1]}", fixed("")))
    yield client
    await client.aclose()
    await runner.cleanup()


@asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def test_connections_follow_the_pod_that_replaces_another(client: ApiClient) -> None:
    pods = iter(["gone", "live", "gone", "live"])

    async def find() -> PodPort:
        return PodPort("ml", next(pods), PORT)

    async with forwarded(client, find) as port:
        for text in (b"first", b"second" * 100_000):
            async with connected(port) as (reader, writer):
                writer.write(text)
                assert await asyncio.wait_for(reader.readexactly(len(text)), 30) == text.upper()
    assert next(pods, None) is None


async def test_a_port_without_a_listener_closes_the_connection_with_a_message(client: ApiClient) -> None:
    failures: list[str] = []

    async def find() -> PodPort:
        return PodPort("ml", "broken", PORT)

    on_failure = lambda error: failures.append(str(error))  # noqa: E731
    async with forwarded(client, find, on_failure=on_failure) as port, connected(port) as (reader, _):
        assert await asyncio.wait_for(reader.read(), 30) == b""
    assert failures == ["port-forward: connection refused"]
