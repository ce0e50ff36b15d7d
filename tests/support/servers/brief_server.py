"""A server that sends a few bytes or nothing to each client and closes the connection."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@asynccontextmanager
async def brief_server(*answers: bytes | None) -> AsyncIterator[str]:
    """Send these bytes, or for None nothing until the other side hangs up; gives the URL.

    At the end, by when all clients must have been closed, it waits until the loop has no other task: until every
    connection has ended, even one that was given up before it was taken.
    """

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):  # the client may close the connection first
            await reader.readuntil(b"\r\n\r\n")
            for answer in answers:
                if answer is None:
                    await reader.read()
                else:
                    writer.write(answer)
                    await writer.drain()
                    await asyncio.sleep(0)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            while others := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(others)
