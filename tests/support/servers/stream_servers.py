"""Servers of byte streams that cut all connections at the end."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

Serve: TypeAlias = "Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]"


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[int]:
    """Serve each connection on a port of 127.0.0.1; its end, by either side, closes the connection."""
    connections: set[asyncio.Task[None]] = set()

    async def until_closed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.CancelledError):
            await serve(reader, writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(until_closed(reader, writer))
        connections.add(task)
        task.add_done_callback(lambda _: writer.close())  # also if it was cancelled before it began

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
