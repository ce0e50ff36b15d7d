"""Connections of this process's event loop."""

import asyncio
import os
import socket
from contextlib import suppress


async def disconnected(port: int | None) -> None:
    """Wait until no connection of this loop leads to the port: closing TLS needs a response before the loop ends."""
    watched = asyncio.get_running_loop()._selector.get_map()  # type: ignore[attr-defined]
    async with asyncio.timeout(60):
        while port in {_peer_port(key.fd) for key in watched.values()}:  # noqa: ASYNC110 - polls the selector
            await asyncio.sleep(0.01)


def _peer_port(descriptor: int) -> int | None:
    with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as connection:
        peer = connection.getpeername()
        return peer[1] if isinstance(peer, tuple) else None
    return None
