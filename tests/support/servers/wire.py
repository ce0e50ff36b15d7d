"""A proxy between clients and a server on this machine that can break or silently stall connections."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@dataclass
class Wire:
    """A proxy that carries bytes both ways unless it is cut or stalled."""

    port: int
    whole: asyncio.Event = field(default_factory=asyncio.Event)
    """If cleared, bytes are held back and connections stay open."""
    refusing: bool = False
    _ends: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Break all connections and reject new ones until `mend`."""
        self.refusing = True
        for end in self._ends:
            end.transport.abort()

    def mend(self) -> None:
        """Accept connections and carry bytes again."""
        self.refusing = False
        self.whole.set()

    async def join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect one client to the server."""
        if self.refusing:
            writer.transport.abort()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        self._ends |= {writer, back}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, back))
                group.create_task(self._carry(there, writer))
        finally:
            self._ends -= {writer, back}
            for end in (writer, back):
                end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(2**16):
                await self.whole.wait()
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


@asynccontextmanager
async def wire_to(kubeconfig: Path, folder: Path) -> AsyncIterator[tuple[Wire, Path]]:
    """Run a proxy to the API server of a kubeconfig; yield it and a kubeconfig that uses it."""
    config = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
    cluster = config["clusters"][0]["cluster"]
    wire = Wire(urlsplit(cluster["server"]).port or 443)
    wire.whole.set()
    async with await asyncio.start_server(wire.join, "127.0.0.1", 0) as server:
        cluster["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        path = folder / "kubeconfig-through-the-wire"
        await asyncio.to_thread(path.write_text, yaml.safe_dump(config))
        yield wire, path
        wire.cut()
