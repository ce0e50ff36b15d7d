"""The queue of keys, with workers that the tests act as."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.runs.workqueue import Workqueue
from support.cluster.operating import DEADLINE_S


async def next_key(queue: Workqueue[str]) -> str:
    async with asyncio.timeout(DEADLINE_S):
        return await queue.get()


async def test_a_key_waits_once_and_news_come_before_delays() -> None:
    queue = Workqueue[str]()
    queue.add_after("late", 0.0)
    queue.add_after("later", 0.01)
    for key in ("a", "b", "a"):
        queue.add(key)
    keys = []
    while len(keys) < 4:
        keys.append(await next_key(queue))
        queue.done(keys[-1])
    assert keys == ["a", "b", "late", "later"]
    assert not queue.has_news


async def test_of_two_delays_the_first_to_end_counts() -> None:
    queue = Workqueue[str]()
    queue.add_after("a", 3600.0)
    queue.add_after("a", 0.0)
    queue.add_after("a", 3600.0)
    assert await next_key(queue) == "a"
    queue.done("a")
    queue.add("b")
    assert await next_key(queue) == "b"  # "a" waits no longer, also not for the hour


async def test_a_key_with_a_worker_waits_until_it_is_given_back() -> None:
    queue = Workqueue[str]()
    queue.add("a")
    first = await next_key(queue)
    queue.add(first)
    second = asyncio.create_task(queue.get())
    queue.add("b")
    assert await second == "b"
    draining = asyncio.create_task(queue.drain())
    third = asyncio.create_task(queue.get())
    queue.done("b")
    queue.done(first)
    async with asyncio.timeout(DEADLINE_S):
        assert await third == "a"
        await draining  # although "a" is with a worker again


async def test_a_dropped_key_does_not_come() -> None:
    queue = Workqueue[str]()
    queue.add("a")
    queue.add_after("a", 0.0)
    queue.drop("a")
    queue.add("b")
    assert await next_key(queue) == "b"


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_every_key_with_news_comes_and_never_to_two_workers(added: list[tuple[str, bool]]) -> None:
    async def work() -> None:
        queue = Workqueue[str]()
        busy, seen = Counter[str](), set[str]()

        async def worker() -> None:
            while True:
                key = await queue.get()
                busy[key] += 1
                assert busy[key] == 1
                seen.add(key)
                await asyncio.sleep(0)
                busy[key] -= 1
                queue.done(key)

        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker()) for _ in range(3)]
            for key, delayed in added:
                queue.add_after(key, 0.0) if delayed else queue.add(key)
                await asyncio.sleep(0)
            async with asyncio.timeout(DEADLINE_S):
                while seen != {key for key, _ in added} or queue.has_news:  # noqa: ASYNC110 - lets the workers go on
                    await asyncio.sleep(0)
                await queue.drain()
            for each in workers:
                each.cancel()

    asyncio.run(work())
