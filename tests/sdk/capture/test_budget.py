"""The memory budget holds for readers of any sizes, also for those that give up."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.budget import ByteBudget, Reservation
from mldiagnostics.capture.deadline import Deadline

MEBIBYTE = 1024 * 1024
TOTAL = 64 * MEBIBYTE


@given(least=st.integers(MEBIBYTE, 16 * MEBIBYTE), factors=st.lists(st.floats(1, 2), min_size=1, max_size=60))
def test_property_traces_of_similar_sizes_stay_within_the_budget(least: int, factors: list[float]) -> None:
    most = asyncio.run(_most_bytes_held([int(least * factor) for factor in factors]))
    assert most <= TOTAL


@given(st.lists(st.integers(1, 3 * TOTAL), min_size=1, max_size=20))
def test_property_a_trace_larger_than_the_budget_is_read(sizes: list[int]) -> None:
    asyncio.run(_most_bytes_held(sizes))


@given(st.lists(st.booleans(), min_size=1, max_size=20))
def test_property_readers_that_give_up_leave_no_gap(gives_up: list[bool]) -> None:
    asyncio.run(_some_give_up(gives_up))


async def _most_bytes_held(sizes: list[int]) -> int:
    budget = ByteBudget(TOTAL)
    held_now = most = 0

    async def read_and_store(size: int) -> None:
        nonlocal held_now, most
        held = await budget.take(Deadline(60))
        await asyncio.sleep(0)
        held_now += size
        most = max(most, held_now)
        budget.settle(held, size)
        await asyncio.sleep(0)
        held_now -= size
        budget.give_back(held)

    await asyncio.wait_for(asyncio.gather(*map(read_and_store, sizes)), 60)
    return most


async def _some_give_up(gives_up: list[bool]) -> None:
    budget = ByteBudget(1)
    first = await budget.take(Deadline(60))
    waiting: list[asyncio.Task[Reservation]] = [asyncio.create_task(budget.take(Deadline(60))) for _ in gives_up]
    await asyncio.sleep(0)
    for task, gone in zip(waiting, gives_up, strict=True):
        if gone:
            task.cancel()
    budget.give_back(first)
    for task, gone in zip(waiting, gives_up, strict=True):
        if not gone:
            budget.give_back(await asyncio.wait_for(task, 60))
    budget.give_back(await budget.take(Deadline(60)))
