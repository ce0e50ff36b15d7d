"""Ports for servers that cannot choose one themselves.

The kernel gives the ports of its own range to outgoing connections at any moment, also one that was free a moment ago.
These are below that range, and drawn, so that two processes hardly ever draw the same one.
"""

import asyncio
import secrets
import socket
from contextlib import suppress

LOWEST = 12_000
HIGHEST = 29_999  # NodePorts begin at 30000, outgoing connections of Linux at 32768


def free_port() -> int:
    """Return a free loopback port."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """Return different free loopback ports."""
    ports: set[int] = set()
    while len(ports) < count:
        port = LOWEST + secrets.randbelow(HIGHEST - LOWEST + 1)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.add(port)
    return list(ports)


async def until_open(port: int, *, deadline_s: float) -> None:
    """Wait until a loopback port accepts connections."""
    async with asyncio.timeout(deadline_s):
        while True:
            with suppress(OSError):
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
                return
            await asyncio.sleep(0.05)
