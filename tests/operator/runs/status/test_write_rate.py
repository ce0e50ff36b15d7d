"""The limit on writes, with callers of several namespaces."""

from __future__ import annotations

import asyncio

from mldiagnostics_operator.runs.status.write_rate import WriteRate
from support.cluster.operating import DEADLINE_S

MANY = 200


async def test_the_writes_of_one_namespace_delay_another_by_one_write() -> None:
    rate, written = WriteRate(per_s=1000.0, burst=1), list[str]()

    async def write(namespace: str) -> None:
        await rate.take(namespace)
        written.append(namespace)

    async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
        for _ in range(MANY):
            group.create_task(write("greedy"))
        await asyncio.sleep(0)
        before = len(written)
        await write("honest")
        assert written[before:].count("greedy") <= 2
    assert len(written) == MANY + 1


async def test_the_rate_grows_with_the_fleet() -> None:
    rate = WriteRate(per_s=1e-6, burst=1)
    rate.serve(10_000_000)
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(2):  # the second one would wait for days
            await rate.take("ml")
