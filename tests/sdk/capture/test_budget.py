"""The memory budget: nothing is admitted without memory, and tenants share it fairly."""

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.capture.budget import SMALL_TRACES_BYTES, ByteBudget, Reservation
from mldiagnostics.capture.deadline import Deadline

MEBIBYTE = 1024 * 1024
LARGEST = 256 * MEBIBYTE
SMALL = SMALL_TRACES_BYTES // 4

SIZES = st.integers(0, LARGEST) | st.integers(0, SMALL)


@given(st.lists(st.tuples(st.sampled_from("abc"), SIZES, st.booleans()), max_size=60))
def test_property_traces_in_memory_stay_within_the_budget_and_all_are_served(
    traces: list[tuple[str, int, bool]],
) -> None:
    asyncio.run(_read_all(traces))


async def _read_all(traces: list[tuple[str, int, bool]]) -> None:
    budget, held, served = ByteBudget(LARGEST), 0, 0

    async def read_and_store(tenant: str, size: int) -> None:
        nonlocal held, served
        reservation = await budget.reserve(size, tenant, Deadline(60))
        held += size
        try:
            assert held <= budget.used_bytes <= budget.total_bytes
            await asyncio.sleep(0)
        finally:  # also if it gives up with the memory in hand
            held -= size
            reservation.release()
            reservation.release()
        served += 1

    tasks = [asyncio.create_task(read_and_store(tenant, size)) for tenant, size, _ in traces]
    await asyncio.sleep(0)
    for task, (*_, gives_up) in zip(tasks, traces, strict=True):
        if gives_up:
            task.cancel()
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 60)
    assert served >= sum(not gives_up for *_, gives_up in traces)


@given(others=st.lists(SIZES, max_size=60), size=st.integers(0, SMALL))
def test_property_a_small_trace_never_waits_for_another_tenant(others: list[int], size: int) -> None:
    async def reserve() -> None:
        budget = ByteBudget(LARGEST)
        waiting = [asyncio.create_task(budget.reserve(other, "others", Deadline(60))) for other in others]
        await asyncio.sleep(0)
        await budget.reserve(size, "victim", Deadline(0))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(reserve())


async def test_a_tenant_with_many_large_traces_lets_the_next_tenant_in() -> None:
    budget, order = ByteBudget(LARGEST), []
    first = await budget.reserve(LARGEST, "many", Deadline(60))

    async def wait(tenant: str) -> None:
        reservation = await budget.reserve(LARGEST, tenant, Deadline(60))
        order.append(tenant)
        reservation.release()

    tasks = [asyncio.create_task(wait(tenant)) for tenant in ("many", "many", "few")]
    await asyncio.sleep(0)
    second: Reservation | None = None
    with suppress(asyncio.TimeoutError):
        second = await budget.reserve(LARGEST, "late", Deadline(0))
    assert second is None
    first.release()
    await asyncio.gather(*tasks)
    assert order == ["few", "many", "many"]
    assert budget.used_bytes == 0


async def test_a_wait_until_the_deadline_takes_nothing() -> None:
    budget = ByteBudget(LARGEST)
    held = await budget.reserve(LARGEST, "a", Deadline(60))
    with pytest.raises(asyncio.TimeoutError):
        await budget.reserve(LARGEST, "b", Deadline(0))
    held.release()
    assert budget.used_bytes == 0
    (await budget.reserve(LARGEST, "b", Deadline(0))).release()
