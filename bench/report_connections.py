"""One connection to a control plane for each process of a fleet, kept open as SDKs keep it."""

import asyncio
import gzip
import json
import ssl
from contextlib import suppress
from dataclasses import dataclass
from random import random
from typing import Any

from mldiagnostics.control_plane.answers import back_off_s

BUSY_PAUSE_S = 1.0
"""Pause after a connection that was closed before its handshake."""
TIMEOUT_S = 10.0
"""Of a report with its connection, as in the SDK."""


@dataclass(frozen=True)
class Server:
    """The control plane that gets the reports."""

    port: int
    tls: ssl.SSLContext


class ReportConnection:
    """Sends the reports of one process.

    Args:
        server: Control plane of this machine.
        number: Number of the process; each has an address of its own, as pods have.
    """

    def __init__(self, server: Server, number: int) -> None:
        self._server = server
        self._address = f"127.{1 + number // 62_500}.{number // 250 % 250}.{number % 250 + 1}"
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        """Connect; try again while the server is busy."""
        while True:
            with suppress(ConnectionError):
                self._reader, self._writer = await asyncio.open_connection(
                    "127.0.0.1", self._server.port, ssl=self._server.tls, local_addr=(self._address, 0)
                )
                return
            await asyncio.sleep(BUSY_PAUSE_S)

    async def post(self, run: str, token: str, report: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Send a report, again if the connection is closed; return the status and the answer.

        A report waits for the one before it, as in the SDK.
        """
        body = gzip.compress(json.dumps(report).encode(), 6)
        head = (
            f"POST /v1/runs/{run}/reports HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        async with self._turn:
            return await self._post(head.encode() + body)

    async def _post(self, request: bytes) -> tuple[int, dict[str, Any]]:
        failures = 0
        while True:
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    return await self._exchange(request)
            except (ConnectionError, asyncio.IncompleteReadError):  # closed since the last report
                self.close()
            except TimeoutError:
                self.close()
                failures += 1
                await asyncio.sleep(back_off_s(failures, luck=random()))

    async def _exchange(self, request: bytes) -> tuple[int, dict[str, Any]]:
        """Send a request; return the status and the answer."""
        if self._reader is None or self._writer is None:
            await self.open()
        reader, writer = self._reader, self._writer
        assert reader
        assert writer
        writer.write(request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        return int(head.split()[1]), json.loads(await reader.readexactly(length))

    def close(self) -> None:
        """Close the connection at once."""
        if self._writer:
            self._writer.transport.abort()
        self._reader = self._writer = None
