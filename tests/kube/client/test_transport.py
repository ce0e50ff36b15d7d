"""Connections to servers that do not keep to HTTP, never end, or lead elsewhere: all end by a deadline or a bound."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from itertools import count
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_kube.client import api_client
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, RequestRejected, ResponseTooLarge, Unavailable, path_to
from mldiagnostics_kube.client.credentials import Credentials, fixed
from support.servers.stalled_server import StalledServer
from support.servers.stream_servers import listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.servers.stream_servers import Serve

DEADLINE_S = 60
PODS = path_to("", "v1", "pods", namespace="ml")
EXEC = path_to("", "v1", "pods", namespace="ml", name="a", sub="exec")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@asynccontextmanager
async def client_of(port: int) -> AsyncIterator[ApiClient]:
    client = ApiClient(Credentials(f"http://127.0.0.1:{port}", fixed("secret")), is_trusted=False)
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield client
    finally:
        await client.aclose()


def endless(head: bytes) -> Serve:
    """Return a server whose responses never end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + b"Content-Length: 1000000000000\r\n\r\n")
        while True:
            writer.write(b"[" * 65536)
            await writer.drain()

    return serve


async def test_an_endless_response_is_dropped_at_a_bound() -> None:
    async with listening(endless(HEAD)) as port, client_of(port) as client:
        with pytest.raises(ResponseTooLarge):
            await client.get(f"{PODS}/a")
        with pytest.raises(ResponseTooLarge):
            await client.items(PODS, dict)


async def test_an_endless_refusal_of_a_watch_is_dropped_at_a_bound() -> None:
    head = HEAD.replace(b"200 OK", b"403 Forbidden")
    async with listening(endless(head)) as port, client_of(port) as client:
        with pytest.raises(RequestRejected):
            async with aclosing(client.watch(PODS, "0")) as events:
                await anext(events)


@pytest.mark.parametrize("sent", [b"", HEAD, HEAD + b"Content-Length: 10\r\n\r\n{"])
async def test_a_response_that_stops_ends_by_a_deadline(sent: bytes) -> None:
    async def stop(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        await asyncio.Event().wait()

    async with listening(stop) as port, client_of(port) as client:
        with pytest.raises(Unavailable, match="did not respond in"):
            await client.get(f"{PODS}/a", timeout_s=0.2)


@pytest.mark.parametrize("sent", [b"", HEAD + b"Content-Length: 10\r\n\r\n{", b"SSH-2.0-OpenSSH\r\n", b"\x00" * 99])
async def test_a_server_that_leaves_or_does_not_speak_http_is_unavailable(sent: bytes) -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)

    async with listening(leave) as port, client_of(port) as client:
        with pytest.raises(Unavailable):
            await client.get(f"{PODS}/a")
        with pytest.raises(Unavailable):
            async with aclosing(client.watch(PODS, "0")) as events:
                await anext(events)
        with pytest.raises(ClusterError):
            await client.open_socket(EXEC, protocol="v4.channel.k8s.io")


@pytest.mark.parametrize("is_watch", [True, False])
async def test_a_connection_is_dropped_although_the_server_hangs(tmp_path: Path, *, is_watch: bool) -> None:
    server = StalledServer(tmp_path, HEAD + b"Content-Length: 10\r\n\r\n")
    with server.listening() as url:
        client = ApiClient(Credentials(url, fixed("secret"), ca_pem=server.authority))
        with pytest.raises((Unavailable, TimeoutError)):
            async with asyncio.timeout(0.2 if is_watch else DEADLINE_S), aclosing(client.watch(PODS, "0")) as events:
                await (anext(events) if is_watch else client.get(f"{PODS}/a", timeout_s=0.2))
        await asyncio.to_thread(server.dropped.get, timeout=DEADLINE_S)
        await client.aclose()


async def test_a_list_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = count(0.0, 0.4)
    monkeypatch.setattr(api_client, "LIST_S", 1.0)
    monkeypatch.setattr(api_client, "monotonic", lambda: next(now_s))
    pages = 0

    async def more(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal pages
        while await reader.readuntil(b"\r\n\r\n"):
            pages += 1
            body = json.dumps({"metadata": {"continue": str(pages)}, "items": []}).encode()
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async with listening(more) as port, client_of(port) as client:
        with pytest.raises(Unavailable, match="the list did not end in 1 s"):
            await client.items(PODS, dict)
    assert pages > 1


async def test_a_socket_does_not_follow_redirects() -> None:
    elsewhere: list[bytes] = []

    async def other(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        elsewhere.append(await reader.read(1))

    async with listening(other) as target:

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            head = f"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:{target}/\r\nContent-Length: 0\r\n\r\n"
            writer.write(head.encode())

        async with listening(redirect) as port, client_of(port) as client:
            with pytest.raises(RequestRejected, match="redirects are not followed"):
                await client.open_socket(EXEC, protocol="v4.channel.k8s.io")
    assert not elsewhere
