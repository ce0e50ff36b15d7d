"""Clients of the control-plane API, for a pod with the operator's image: `reports.py MANNER URL LEADER RUN TOKEN…`.

Honest ones print the status and milliseconds of each report, and the longest time that the leader's probe has taken.
"""

import asyncio
import gzip
import json
import random
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from itertools import count
from typing import Any

import aiohttp

TLS = ssl.create_default_context()
TLS.check_hostname, TLS.verify_mode = False, ssl.CERT_NONE
START = 1_790_000_000_000_000
MANY = 100_000
LARGE = 250_000
"""Bytes of one part of a report, near its bound."""
PAUSE_S, FLEET_INTERVAL_S, PROBE_S = 0.5, 10.0, 0.05
RUNS, FLEET = 1100, 800
PARALLEL = 4
"""Requests at a time with one token."""


def report(sequence: int, **parts: Any) -> bytes:
    """Return a compressed report with these parts."""
    head = {"v": 1, "incarnation": "00000001", "sequence": sequence, "sent": 1.0, "rank": 0, "run": {"name": "r"}}
    return gzip.compress(json.dumps(head | parts, separators=(",", ":")).encode(), 1)


def steps(number: int = 20) -> dict[str, Any]:
    """Return events of some steps."""
    return {"items": [[START, 2, 0, 0, ""], *[1_000_000] * number]}


def amplifying() -> Iterator[tuple[str, bytes]]:
    """Yield bodies of 350 bytes whose events, one by one, are 370 MB of journal."""
    events = {"items": [[START, 2, 0, 0, "\x01" * 600], *[1] * MANY]}
    for sequence in count(1):
        yield f"amplified-{sequence % 8}", report(sequence, events=events)


def dictionaries() -> Iterator[tuple[str, bytes]]:
    """Yield bodies of large dictionaries: kinds, configurations, profiles."""
    kinds = {"name": "r", "kinds": {f"{number}": {} for number in range(LARGE // 16)}}
    configs = {"user": {f"option-{number}": "x" * 50 for number in range(LARGE // 80)}}
    sessions = [{"id": f"{number}", "directory": "x" * 2000, "state": "Stored"} for number in range(32)]
    parts: list[dict[str, Any]] = [{"run": kinds}, {"configs": configs}, {"sessions": sessions}]
    for sequence in count(1):
        yield f"run-{sequence % 200}", report(sequence, **parts[sequence % len(parts)])


def new_runs() -> Iterator[tuple[str, bytes]]:
    """Yield reports with some events, each of another run; then again."""
    for sequence in count(1):
        for number in range(RUNS):
            yield f"new-{number}", report(sequence, events=steps(), progress={"step": sequence})


def bulky() -> Iterator[tuple[str, bytes]]:
    """Yield as many events that do not compress as a report may have, so that the journal grows."""
    dice = random.Random(1)
    for sequence in count(1):
        times = [dice.randrange(10**9) for _ in range(MANY)]
        yield f"bulky-{sequence % 8}", report(sequence, events={"items": [[START, 2, 0, 0, ""], *times]})


class Client:
    """Sends reports with some tokens."""

    def __init__(self, session: aiohttp.ClientSession, url: str, tokens: list[str]) -> None:
        self._session, self._url, self._tokens = session, url, tokens

    async def post(self, number: int, run: str, body: bytes) -> int:
        """Send a report with one of the tokens; return the status, or 0 without an answer."""
        token = self._tokens[number % len(self._tokens)]
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Content-Encoding": "gzip"}
        try:
            async with self._session.post(f"{self._url}/v1/runs/{run}/reports", data=body, headers=headers) as answer:
                await answer.read()
                return answer.status
        except (aiohttp.ClientError, TimeoutError):
            return 0

    async def measured(self, number: int, run: str, body: bytes) -> None:
        """Send a report and print its status and milliseconds."""
        begin = time.perf_counter()
        status = await self.post(number, run, body)
        print("reported", status, round((time.perf_counter() - begin) * 1000, 1), flush=True)

    async def attack(self, bodies: Iterator[tuple[str, bytes]]) -> None:
        """Send bodies as fast as they are answered; pause when they are refused."""

        async def work(number: int) -> None:
            for run, body in bodies:
                if await self.post(number, run, body) in (0, 429, 503):
                    await asyncio.sleep(PAUSE_S)

        await asyncio.gather(*(work(number) for number in range(PARALLEL * len(self._tokens))))

    async def report_honestly(self, run: str) -> None:
        """Report one run twice a second."""
        for sequence in count(1):
            await self.measured(0, run, report(sequence, events=steps(), progress={"step": sequence}))
            await asyncio.sleep(PAUSE_S)

    async def report_fleet(self, run: str) -> None:
        """Report a fleet of runs, each every 10 s, beside the honest one."""

        async def one(number: int) -> None:
            await asyncio.sleep(FLEET_INTERVAL_S * number / FLEET)
            for sequence in count(1):
                begin = time.perf_counter()
                body = report(sequence, events=steps(), progress={"step": sequence})
                await self.measured(number, f"{run}-{number}", body)
                await asyncio.sleep(FLEET_INTERVAL_S - (time.perf_counter() - begin))

        await asyncio.gather(*(one(number) for number in range(FLEET)), self.report_honestly(run))


async def probe(session: aiohttp.ClientSession, address: str) -> None:
    """Print the milliseconds of the slowest probe of the leader so far."""
    longest = 0.0
    while True:
        begin = time.perf_counter()
        with suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(f"http://{address}/healthz") as answer:
                await answer.read()
            if (spent := (time.perf_counter() - begin) * 1000) > longest:
                longest = spent
                print("probed", round(longest, 1), flush=True)
        await asyncio.sleep(PROBE_S)


BODIES: dict[str, Callable[[], Iterator[tuple[str, bytes]]]] = {
    "amplifying": amplifying,
    "dictionaries": dictionaries,
    "new-runs": new_runs,
    "bulky": bulky,
}


async def main(manner: str, url: str, leader: str, run: str, tokens: list[str]) -> None:
    connector = aiohttp.TCPConnector(ssl=TLS, limit=0)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        client = Client(session, url, tokens)
        if manner in BODIES:
            print("attacking", flush=True)
            await client.attack(BODIES[manner]())
        else:
            honest: Awaitable[None] = client.report_fleet(run) if manner == "fleet" else client.report_honestly(run)
            await asyncio.gather(honest, probe(session, leader))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4], sys.argv[5:]))
