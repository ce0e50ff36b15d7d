"""The queue of keys, with workers that the tests act as."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_operator.runs.keys import ObjectKey
from mldiagnostics_operator.workqueue import Workqueue
from support.cluster.operating import DEADLINE_S


def of(name: str, namespace: str = "ml") -> ObjectKey:
    return ObjectKey(namespace, name)


async def next_key(queue: Workqueue[ObjectKey]) -> ObjectKey:
    async with asyncio.timeout(DEADLINE_S):
        return await queue.get()


async def test_a_key_waits_once_and_news_come_before_delays() -> None:
    queue = Workqueue[ObjectKey]()
    queue.add_after(of("late"), 0.0)
    queue.add_after(of("later"), 0.01)
    for key in ("a", "b", "a"):
        queue.add(of(key))
    keys = list[ObjectKey]()
    while len(keys) < 4:
        keys.append(await next_key(queue))
        queue.done(keys[-1])
    assert [key.name for key in keys] == ["a", "b", "late", "later"]
    assert not queue.has_news("ml")


async def test_of_two_delays_the_first_to_end_counts() -> None:
    queue = Workqueue[ObjectKey]()
    queue.add_after(of("a"), 3600.0)
    queue.add_after(of("a"), 0.0)
    queue.add_after(of("a"), 3600.0)
    assert await next_key(queue) == of("a")
    queue.done(of("a"))
    queue.add(of("b"))
    assert await next_key(queue) == of("b")  # "a" waits no longer, also not for the hour


async def test_a_key_with_news_keeps_its_place_among_delays() -> None:
    queue = Workqueue[ObjectKey]()
    for name, delay_s in (("second", -2.0), ("third", -1.0), ("first", -3.0)):
        queue.add_after(of(name), delay_s)
    queue.add(of("second"))
    assert await next_key(queue) == of("second")
    queue.done(of("second"))
    queue.add_after(of("second"), -2.0)
    keys = list[ObjectKey]()
    while len(keys) < 3:
        keys.append(await next_key(queue))
        queue.done(keys[-1])
    assert [key.name for key in keys] == ["first", "second", "third"]


async def test_a_key_with_a_worker_waits_until_it_is_given_back() -> None:
    queue = Workqueue[ObjectKey]()
    queue.add(of("a"))
    first = await next_key(queue)
    queue.add(first)
    second = asyncio.create_task(queue.get())
    queue.add(of("b"))
    assert await second == of("b")
    draining = asyncio.create_task(queue.drain())
    third = asyncio.create_task(queue.get())
    queue.done(of("b"))
    queue.done(first)
    async with asyncio.timeout(DEADLINE_S):
        assert await third == of("a")
        await draining  # although "a" is with a worker again


async def test_a_dropped_key_does_not_come() -> None:
    queue = Workqueue[ObjectKey]()
    queue.add(of("a"))
    queue.add_after(of("a"), 0.0)
    queue.drop(of("a"))
    queue.add(of("b"))
    assert await next_key(queue) == of("b")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=40))
def test_every_key_with_news_comes_and_never_to_two_workers(added: list[tuple[str, bool]]) -> None:
    async def work() -> None:
        queue = Workqueue[ObjectKey]()
        busy, seen = Counter[ObjectKey](), set[ObjectKey]()

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
            for name, delayed in added:
                queue.add_after(of(name), 0.0) if delayed else queue.add(of(name))
                await asyncio.sleep(0)
            async with asyncio.timeout(DEADLINE_S):
                while seen != {of(name) for name, _ in added} or queue.has_news("ml"):  # noqa: ASYNC110 - lets the workers go on
                    await asyncio.sleep(0)
                await queue.drain()
            for each in workers:
                each.cancel()

    asyncio.run(work())


ARRIVALS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.booleans()), unique_by=lambda each: each[:2]
)


@given(ARRIVALS)
def test_namespaces_come_in_turn_and_news_first_in_each(arrivals: list[tuple[str, int, bool]]) -> None:
    async def work() -> list[ObjectKey]:
        queue = Workqueue[ObjectKey]()
        for namespace, number, delayed in arrivals:
            key = of(f"{number}", namespace)
            queue.add_after(key, -1.0) if delayed else queue.add(key)
        taken = list[ObjectKey]()
        while len(taken) < len(arrivals):
            taken.append(await next_key(queue))
            queue.done(taken[-1])
        return taken

    taken = asyncio.run(work())
    news_first = sorted(arrivals, key=lambda each: each[2])
    for namespace in "abc":
        own = [key for key in taken if key.namespace == namespace]
        assert own == [of(f"{number}", name) for name, number, _ in news_first if name == namespace]
        for at, key in enumerate(taken[:-1]):
            if key.namespace == namespace and namespace == taken[at + 1].namespace:
                assert {later.namespace for later in taken[at + 1 :]} == {namespace}  # nobody else waits


async def test_a_worker_for_news_takes_none_of_many_late_keys() -> None:
    queue = Workqueue[ObjectKey]()
    for number in range(40):
        queue.add_after(of(f"late-{number}", f"team-{number % 8}"), -1.0)
    waiting = asyncio.create_task(queue.get(news_only=True))
    assert (await next_key(queue)).name == "late-0"
    assert not waiting.done()
    queue.add(of("news", "team-7"))
    async with asyncio.timeout(DEADLINE_S):
        assert await waiting == of("news", "team-7")


async def test_a_worker_for_news_gets_a_key_that_was_added_while_another_had_it() -> None:
    queue = Workqueue[ObjectKey]()
    queue.add(of("a"))
    await next_key(queue)
    queue.add(of("a"))
    waiting = asyncio.create_task(queue.get(news_only=True))
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done(of("a"))
    async with asyncio.timeout(DEADLINE_S):
        assert await waiting == of("a")
