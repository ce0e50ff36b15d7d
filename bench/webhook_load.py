"""Load generator: sends one review repeatedly, at full speed or at a rate: `python -m bench.webhook_load JOB`.

A separate process on its own core without an HTTP library, so that it measures the server and not itself. JOB is a JSON
object with the fields of Job; the output is a JSON object with the fields of Figures.
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

from bench.process_usage import cpu_seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Load to generate; `per_second` 0 means full speed."""

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
    """Results; latencies count from the time when a request was due."""

    answers: int
    denied: int
    patched: int
    seconds: float
    cpu_seconds: float
    """CPU time of the servers."""
    p50_ms: float
    p99_ms: float


class Connection(asyncio.Protocol):
    """Connection with one request at a time."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._received = bytearray()
        self._answer: asyncio.Future[bytes] | None = None
        self._transport: asyncio.WriteTransport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)  # uvloop's transports have no base class

    async def send(self) -> bytes:
        """Send the request and return the response, head and body."""
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
        """Close the connection."""
        if self._transport:
            self._transport.abort()


class Load:
    """Responses so far."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.latencies_ms: list[float] = []
        self.denied = self.patched = 0

    async def run(self) -> Figures:
        """Warm up for a second, then measure."""
        connections = await self._connect()
        await self._as_fast_as_possible(connections, time.perf_counter() + 1.0)
        self.latencies_ms, self.denied, self.patched = [], 0, 0
        start, cpu_start = time.perf_counter(), sum(map(cpu_seconds, self._job.pids))
        if self._job.per_second:
            await self._paced(connections, start)
        else:
            await self._as_fast_as_possible(connections, start + self._job.seconds)
        seconds, cpu_s = time.perf_counter() - start, sum(map(cpu_seconds, self._job.pids)) - cpu_start
        for connection in connections:
            connection.close()
        return Figures(
            answers=len(self.latencies_ms),
            denied=self.denied,
            patched=self.patched,
            seconds=seconds,
            cpu_seconds=cpu_s,
            p50_ms=statistics.median(self.latencies_ms),
            p99_ms=statistics.quantiles(self.latencies_ms, n=100)[98],
        )

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
        async def repeat(connection: Connection) -> None:
            while (start := time.perf_counter()) < until:
                await self._one(connection, start)

        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(repeat(connection))

    async def _paced(self, connections: list[Connection], start: float) -> None:
        """Send each request at its time; delays count as latency."""
        moments = self._moments(start)

        async def repeat(connection: Connection) -> None:
            for due in moments:
                await asyncio.sleep(max(due - time.perf_counter(), 0.0))
                await self._one(connection, due)

        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(repeat(connection))

    def _moments(self, start: float) -> Iterator[float]:
        count = int(self._job.per_second * self._job.seconds)
        return iter([start + n / self._job.per_second for n in range(count)])

    async def _one(self, connection: Connection, due: float) -> None:
        answer = await connection.send()
        self.latencies_ms.append((time.perf_counter() - due) * 1000)
        self.denied += not (answer.startswith(b"HTTP/1.1 200") and b'"allowed":true' in answer.replace(b" ", b""))
        self.patched += b'"patch"' in answer


if __name__ == "__main__":
    figures = uvloop.run(Load(Job(**json.loads(sys.argv[1]))).run())
    print(json.dumps(asdict(figures)))
