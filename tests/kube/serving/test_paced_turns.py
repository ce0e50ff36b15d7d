from __future__ import annotations

import asyncio
from itertools import count, repeat
from typing import TYPE_CHECKING

from mldiagnostics_kube.serving import paced_turns
from mldiagnostics_kube.serving.paced_turns import PacedTurns

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

DEADLINE_S = 60.0


async def test_a_flood_of_one_client_delays_another_by_one_turn() -> None:
    turns, order = PacedTurns(1000.0, burst=1), list[str]()

    async def take(client: str) -> None:
        await turns.take(client)
        order.append(client)

    async with asyncio.timeout(DEADLINE_S):
        await take("first")
        flood = [asyncio.create_task(take("flood")) for _ in range(50)]
        await asyncio.sleep(0)
        before = order.count("flood")  # more than one, if the machine was slow meanwhile
        await take("honest")
        assert order.count("flood") - before <= 2, "one turn was given already, one came before in the circle"
        await asyncio.gather(*flood)
    assert order.count("flood") == 50


async def test_a_waiter_that_is_cancelled_takes_no_turn() -> None:
    turns = PacedTurns(0.001, burst=1)
    await turns.take("first")
    waiting = [asyncio.create_task(turns.take("second")) for _ in range(3)]
    await asyncio.sleep(0)
    for each in waiting:
        each.cancel()
    results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in results] == [asyncio.CancelledError] * 3


async def test_a_client_that_waits_no_longer_takes_no_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s: Iterator[float] = repeat(0.0)  # no turn is due before all of them wait
    monkeypatch.setattr(paced_turns, "monotonic", lambda: next(now_s))
    turns = PacedTurns(1000.0, burst=1)
    async with asyncio.timeout(DEADLINE_S):
        assert await turns.take("first")
        gone = [asyncio.create_task(turns.take(f"{number}", is_over=lambda: True)) for number in range(3)]
        await asyncio.sleep(0)
        now_s = count(1.0)
        assert await turns.take("patient")
        assert await asyncio.gather(*gone) == [False] * 3


async def test_turns_come_at_the_rate() -> None:
    loop, turns = asyncio.get_running_loop(), PacedTurns(100.0, burst=4)
    begin = loop.time()
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(14):
            await turns.take("client")
    assert loop.time() - begin >= 0.1 - 0.001
