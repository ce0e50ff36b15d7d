from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics_api.pods import PodView
from mldiagnostics_kube.apiserver import RequestRejected, Unavailable
from mldiagnostics_operator.captures.addresses import Addresses
from support.builders import pod

if TYPE_CHECKING:
    from collections.abc import Iterable


class Pods:
    """Pods as the API server would give them, and how often they were read."""

    def __init__(self, *pods: PodView) -> None:
        self.now: list[PodView] = list(pods)
        self.faults: list[Exception] = []
        self.reads = 0

    async def read(self) -> Iterable[PodView]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.faults:
            raise self.faults.pop(0)
        return list(self.now)


def view(name: str, **changes: object) -> PodView:
    return PodView.of(pod(name, **changes))


async def test_what_was_just_read_is_dialled_without_reading_again() -> None:
    pods = Pods(first := view("a"))
    addresses = Addresses(pods.now, pods.read)
    assert await addresses.before(first.uid, first.ip) is None
    assert pods.reads == 0


async def test_after_the_answer_the_pods_are_read_anew_a_few_times_for_all_who_ask_together() -> None:
    pods = Pods(*(view(f"p-{number}") for number in range(50)))
    addresses = Addresses(pods.now, pods.read)
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(addresses.after(one.uid, one.ip)) for one in pods.now]
    assert {answer.result() for answer in answers} == {None}
    assert 1 <= pods.reads <= 2  # who asks while a reading is under way shares the next one
    before = pods.reads
    await addresses.after(pods.now[0].uid, pods.now[0].ip)
    assert pods.reads == before + 1


async def test_every_change_of_a_pod_is_noticed() -> None:
    before = view("a", ip="10.0.0.1")
    for now, words in (
        ([], "does not exist any more"),
        ([view("a", uid="of-another", ip="10.0.0.1")], "does not exist any more"),
        ([view("a", ip="10.0.0.2")], "10.0.0.2 now, not 10.0.0.1"),
        ([view("a", ip="10.0.0.1", phase="Failed")], "has ended"),
    ):
        pods = Pods(before)
        addresses = Addresses(pods.now, pods.read)
        pods.now = now
        complaint = await addresses.after(before.uid, before.ip)
        assert complaint is not None
        assert words in complaint


async def test_an_api_server_that_is_away_is_waited_for_and_one_that_refuses_is_not() -> None:
    pods = Pods(one := view("a"))
    addresses = Addresses(pods.now, pods.read)
    pods.faults = [Unavailable("restarting")]
    assert await addresses.after(one.uid, one.ip) is None
    assert pods.reads == 2
    pods.faults = [RequestRejected("forbidden", status=403)]
    assert "forbidden" in (await addresses.after(one.uid, one.ip) or "")
