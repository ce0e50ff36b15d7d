from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.fair_slots import FairSlots


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


class Work:
    """Work that holds a slot until it is released."""

    def __init__(self, slots: FairSlots, namespace: str) -> None:
        self.namespace = namespace
        self.inside = False
        self.waited = False
        self.release = asyncio.Event()
        self.task = asyncio.create_task(self._run(slots))

    async def _run(self, slots: FairSlots) -> None:
        async with slots.slot(self.namespace, on_wait=self._note):
            self.inside = True
            await self.release.wait()
        self.inside = False

    async def _note(self) -> None:
        self.waited = True


async def test_a_namespace_never_holds_more_than_its_share() -> None:
    slots = FairSlots(4, per_namespace=2)
    flood = [Work(slots, "flood") for _ in range(50)]
    await settle()
    assert [work.inside for work in flood] == [True, True] + 48 * [False]
    assert [work.waited for work in flood] == [False, False] + 48 * [True]
    victim = Work(slots, "victim")
    await settle()
    assert (victim.inside, victim.waited) == (True, False)
    for work in (*flood, victim):
        work.release.set()
    await asyncio.gather(*(work.task for work in (*flood, victim)))


async def test_namespaces_take_turns_and_keep_their_order() -> None:
    slots = FairSlots(1, per_namespace=1)
    works = [Work(slots, namespace) for namespace in "aaabbc"]
    order = []
    while running := [work for work in works if not work.task.done()]:
        await settle()
        (inside,) = [work for work in running if work.inside]
        order.append((inside.namespace, works.index(inside)))
        inside.release.set()
        await inside.task
    assert order == [("a", 0), ("a", 1), ("b", 3), ("c", 5), ("a", 2), ("b", 4)]


async def test_a_slot_can_be_given_back_for_a_while() -> None:
    slots = FairSlots(1, per_namespace=1)
    async with slots.slot("a") as slot:
        async with slot.freed(), slots.slot("b"):
            pass
        second = Work(slots, "a")
        await settle()
        assert not second.inside
    await settle()
    assert second.inside
    second.release.set()
    await second.task


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["enter", "leave", "cancel"])), max_size=40))
def test_property_slots_are_never_lost_nor_exceeded(steps: list[tuple[str, str]]) -> None:
    async def run() -> None:
        slots = FairSlots(3, per_namespace=2)
        works: list[Work] = []
        for namespace, step in steps:
            mine = [work for work in works if work.namespace == namespace and not work.task.done()]
            if step == "enter":
                works.append(Work(slots, namespace))
            elif mine and step == "leave":
                mine[0].release.set()
            elif mine:
                mine[-1].task.cancel()
            await settle()
            inside = Counter(work.namespace for work in works if work.inside and not work.task.done())
            waiting = Counter(work.namespace for work in works if not work.inside and not work.task.done())
            assert inside.total() <= 3
            assert max(inside.values(), default=0) <= 2
            assert inside.total() == 3 or not [name for name in waiting if inside[name] < 2]
        for work in works:
            work.task.cancel()
        await asyncio.gather(*(work.task for work in works), return_exceptions=True)
        async with slots.slot("a"), slots.slot("a"), slots.slot("b"):
            pass

    asyncio.run(run())


async def test_an_error_while_a_wait_is_reported_gives_the_place_up() -> None:
    async def fail() -> None:
        raise ConnectionError

    slots = FairSlots(1, per_namespace=1)
    async with slots.slot("a"):
        with pytest.raises(ConnectionError):
            async with slots.slot("a", on_wait=fail):
                raise AssertionError
    async with asyncio.timeout(60), slots.slot("a"):
        pass
