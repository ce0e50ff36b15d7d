"""Ports of pods on this machine, as `kubectl port-forward` makes them.

Each connection to the local port has its own WebSocket (`v4.channel.k8s.io`). If a pod has gone, the next connection
goes to the pod that the caller then finds, so that a client that connects again needs no other port.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import aiohttp
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, Unavailable, path_to
from mldiagnostics_kube.client.pod_exec import PROTOCOL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mldiagnostics_kube.client.api_client import ApiClient


LOCALHOST: Final = "127.0.0.1"
CHUNK_BYTES: Final = 64 * 1024
RECONNECT_S: Final = 60.0
"""So long a new connection tries to reach a pod; a Job waits 10 s before it replaces one."""
RETRY_S: Final = 0.5
_DATA, _ERROR = 0, 1
_PORT_BYTES: Final = 2
"""The first message of each channel is the port, which the client knows."""


@dataclass(frozen=True, slots=True)
class PodPort:
    """A port of a pod."""

    namespace: str
    pod: str
    port: int


@asynccontextmanager
async def forwarded(
    client: ApiClient,
    find: Callable[[], Awaitable[PodPort]],
    *,
    local_port: int = 0,
    on_failure: Callable[[ClusterError], None] = lambda _: None,
) -> AsyncIterator[int]:
    """Forward a local port to a port of a pod while the block runs.

    Args:
        client: Client of the cluster.
        find: Returns the port of the pod; called for each connection, and again while the pod cannot be reached.
        local_port: Port of 127.0.0.1; 0 for a free one.
        on_failure: Called if a connection could not be forwarded; the connection is then closed.

    Yields:
        The local port.

    Raises:
        OSError: The local port is taken.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            socket = await _open(client, find)
            try:
                await _relay(socket, reader, writer)
            finally:
                await socket.close()
        except ClusterError as error:
            on_failure(error)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    connections: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)
        task.add_done_callback(lambda _: writer.close())  # also if it was cancelled before it began

    server = await asyncio.start_server(accept, LOCALHOST, local_port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await cancel_all(connections)


async def _open(client: ApiClient, find: Callable[[], Awaitable[PodPort]]) -> aiohttp.ClientWebSocketResponse:
    """Open a socket to the pod, or to the one that replaces it."""
    deadline = asyncio.get_running_loop().time() + RECONNECT_S
    while True:
        try:
            target = await find()
            path = path_to("", "v1", "pods", namespace=target.namespace, name=target.pod, sub="portforward")
            return await client.open_socket(path, protocol=PROTOCOL, query=[("ports", str(target.port))])
        except (Unavailable, NotFound):
            if asyncio.get_running_loop().time() > deadline:
                raise
        await asyncio.sleep(RETRY_S)


async def _relay(
    socket: aiohttp.ClientWebSocketResponse, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Copy both directions until one of them ends; the protocol cannot end only one."""
    directions = {asyncio.create_task(_send(reader, socket)), asyncio.create_task(_receive(socket, writer))}
    try:
        done, _ = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await cancel_all(directions)
    for direction in done:
        with suppress(OSError, aiohttp.ClientError):  # the connection ends with either of its ends
            direction.result()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while chunk := await reader.read(CHUNK_BYTES):
        await socket.send_bytes(bytes([_DATA]) + chunk)


async def _receive(socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
    to_skip = {_DATA: _PORT_BYTES, _ERROR: _PORT_BYTES}
    async for message in socket:
        if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
            continue
        channel, content = message.data[0], message.data[1:]
        skipped = min(to_skip.get(channel, 0), len(content))
        content = content[skipped:]
        if skipped:
            to_skip[channel] -= skipped
        if channel == _ERROR and content:
            raise ClusterError(f"port-forward: {content.decode(errors='replace').strip()}")
        if channel == _DATA and content:
            writer.write(content)
            await writer.drain()
