"""Sends one review again and again, as fast as it is answered or at a rate: `python -m bench.webhook_load JOB`.

A process of its own on a core of its own, with nothing between the event loop and the bytes, so that it measures the
server and not itself. JOB is a JSON object with the fields of Job; the answer is one with the fields of Figures.
"""

import asyncio
import json
import ssl
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import cast

import uvloop
from typing_extensions import override


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be sent; `per_second` is 0 for as fast as possible."""

    ports: list[int]
    pids: list[int]
    ca: str
    body: str
    connections: int
    seconds: float
    per_second: float = 0.0
    path: str = "/mutate/workload"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What was answered. Latencies count from the moment when a request was due."""

    answers: int
    denied: int
    patched: int
    seconds: float
    cpu_seconds: float
    """What the servers took of the processors: less than `seconds` where they shared them."""
    p50_ms: float
    p99_ms: float


class Connection(asyncio.Protocol):
    """One request at a time."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's derive from nothing

    async def ask(self) -> bytes:
        """Send the request and give the answer, head and body."""
        assert self._transport
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(self._request)
        return await self._answer

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        _, _, rest = bytes(self._received[: head + 2]).lower().partition(b"content-length:")
        length = int(rest.partition(b"\r\n")[0])
        if len(self._received) >= head + 4 + length and self._answer:
            answer, self._received = bytes(self._received), bytearray()
            self._answer.set_result(answer)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(exc or ConnectionResetError("closed by the server"))

    def close(self) -> None:
        """Hang up."""
        if self._transport:
            self._transport.abort()


class Load:
    """Everything that was answered so far."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.latencies_ms: list[float] = []
        self.denied = self.patched = 0

    async def run(self) -> Figures:
        """Warm up for a second, then send."""
        connections = await self._connect()
        await self._as_fast_as_possible(connections, time.perf_counter() + 1.0)
        self.latencies_ms, self.denied, self.patched = [], 0, 0
        begun, cpu_begun = time.perf_counter(), self._cpu_seconds()
        if self._job.per_second:
            await self._paced(connections, begun)
        else:
            await self._as_fast_as_possible(connections, begun + self._job.seconds)
        seconds, cpu_seconds = time.perf_counter() - begun, self._cpu_seconds() - cpu_begun
        for connection in connections:
            connection.close()
        return Figures(
            answers=len(self.latencies_ms),
            denied=self.denied,
            patched=self.patched,
            seconds=seconds,
            cpu_seconds=cpu_seconds,
            p50_ms=statistics.median(self.latencies_ms),
            p99_ms=statistics.quantiles(self.latencies_ms, n=100)[98],
        )

    def _cpu_seconds(self) -> float:
        """Sum the time that the servers' threads have run: their first figure, in nanoseconds."""
        threads = (thread for pid in self._job.pids for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"))
        return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9

    async def _connect(self) -> list[Connection]:
        tls = ssl.create_default_context(cafile=self._job.ca)
        body = await asyncio.to_thread(Path(self._job.body).read_bytes)
        head = f"POST {self._job.path}?timeout=3s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        loop, ports = asyncio.get_running_loop(), cycle(self._job.ports)
        made = []
        for _, port in zip(range(self._job.connections), ports, strict=False):
            _, connection = await loop.create_connection(lambda: Connection(request), "127.0.0.1", port, ssl=tls)
            made.append(connection)
        return made

    async def _as_fast_as_possible(self, connections: list[Connection], until: float) -> None:
        async def go_on(connection: Connection) -> None:
            while (begun := time.perf_counter()) < until:
                await self._one(connection, begun)

        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(go_on(connection))

    async def _paced(self, connections: list[Connection], begun: float) -> None:
        """Each request has its moment; a late one is late, and counts so."""
        moments = self._moments(begun)

        async def go_on(connection: Connection) -> None:
            for due in moments:
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                await self._one(connection, due)

        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(go_on(connection))

    def _moments(self, begun: float) -> Iterator[float]:
        count = int(self._job.per_second * self._job.seconds)
        return iter([begun + n / self._job.per_second for n in range(count)])

    async def _one(self, connection: Connection, due: float) -> None:
        answer = await connection.ask()
        self.latencies_ms.append((time.perf_counter() - due) * 1000)
        self.denied += not (answer.startswith(b"HTTP/1.1 200") and b'"allowed":true' in answer.replace(b" ", b""))
        self.patched += b'"patch"' in answer


if __name__ == "__main__":
    figures = uvloop.run(Load(Job(**json.loads(sys.argv[1]))).run())
    print(json.dumps(asdict(figures)))
