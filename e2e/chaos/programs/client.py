"""Hostile HTTP clients, for a pod with the operator's image: `client.py MANNER CONNECTIONS ADDRESS:PORT…`."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

MIB = 1 << 20
BODY_BYTES = 2 * MIB
"""The largest body that the webhook reads."""
HANDSHAKES = 64
PAUSE_S = 0.2
RECONNECT_S = 1.0
TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE
HEAD = (
    "POST /mutate/namespace?timeout=3s HTTP/1.1\r\nHost: webhook\r\nContent-Type: application/json\r\n"
    f"Content-Length: {BODY_BYTES}\r\n\r\n"
).encode()
REVIEW = b'{"request":{"object":[' + b'{"":0},' * ((BODY_BYTES - 64) // 7)
REVIEW = REVIEW.ljust(BODY_BYTES - 5) + b"{}]}}"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def idle(streams: Streams) -> None:
    """Hold a connection after its handshake."""
    await streams[0].read()


async def slow_body(streams: Streams) -> None:
    """Announce a large body and send one byte now and then."""
    reader, writer = streams
    writer.write(HEAD)
    for _ in range(BODY_BYTES):
        writer.write(b"{")
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                if not await reader.read(4096):
                    return


async def hostile_review(streams: Streams) -> None:
    """Send JSON that takes many times its size in memory, over and over."""
    reader, writer = streams
    while True:
        writer.write(HEAD + REVIEW)
        await writer.drain()
        if not await reader.read(4096):
            return
        await asyncio.sleep(PAUSE_S)


async def endless_headers(streams: Streams) -> None:
    """Send headers without end."""
    _, writer = streams
    writer.write(b"GET /metrics HTTP/1.1\r\n")
    for number in range(1_000_000):
        writer.write(b"x-%d: %s\r\n" % (number, b"y" * 4000))
        await writer.drain()


async def unread_responses(streams: Streams) -> None:
    """Ask for metrics without end, and read nothing."""
    _, writer = streams
    while True:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 16)
        await writer.drain()


Behave = Callable[[Streams], Awaitable[None]]
MANNERS: dict[str, tuple[bool, Behave]] = {
    "idle-tls": (True, idle),
    "slow-bodies": (True, slow_body),
    "hostile-reviews": (True, hostile_review),
    "endless-headers": (False, endless_headers),
    "unread-responses": (False, unread_responses),
}
"""Whether a manner speaks TLS, and its behaviour on one connection."""


class Attack:
    """Connections to one address that come back whenever they are closed."""

    def __init__(self, manner: str, address: str) -> None:
        self._tls, self._behave = MANNERS[manner]
        self._host, _, port = address.partition(":")
        self._port = int(port)
        self._handshakes = asyncio.Semaphore(HANDSHAKES)

    async def hold(self, first: asyncio.Semaphore) -> None:
        """Behave badly for ever; release `first` once the first connection is open or was refused."""
        announced = False
        while True:
            with suppress(OSError, TimeoutError):
                async with self._connected() as streams:
                    if not announced:
                        first.release()
                    announced = True
                    await self._behave(streams)
            if not announced:
                first.release()
            announced = True
            await asyncio.sleep(RECONNECT_S)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[Streams]:
        async with self._handshakes, asyncio.timeout(10):
            streams = await asyncio.open_connection(self._host, self._port, ssl=TLS if self._tls else None, limit=4096)
        try:
            yield streams
        finally:
            streams[1].transport.abort()


async def main(manner: str, connections: int, addresses: list[str]) -> None:
    first = asyncio.Semaphore(0)
    async with asyncio.TaskGroup() as group:
        for address in addresses:
            attack = Attack(manner, address)
            for _ in range(connections):
                group.create_task(attack.hold(first))
        for _ in range(connections * len(addresses)):
            await first.acquire()
        print("attacking", flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))
