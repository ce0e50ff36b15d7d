from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_kube.client.apiserver import RequestRejected, Unavailable, error_of
from mldiagnostics_operator.captures.addresses import Addresses
from support.cluster.builders import pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


class Pods:
    """Pods as the API server returns them, and the number of reads."""

    def __init__(self, *pods: PodView) -> None:
        self.current: list[PodView] = list(pods)
        self.errors: list[Exception] = []
        self.reads = 0

    async def read(self) -> Iterable[PodView]:
        self.reads += 1
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        return list(self.current)


def view(name: str, **changes: object) -> PodView:
    return PodView.of(pod(name, **changes))


async def test_a_fresh_address_is_used_without_another_read() -> None:
    pods = Pods(first := view("a"))
    addresses = Addresses(pods.current, pods.read)
    assert await addresses.before(first.uid, first.ip) is None
    assert pods.reads == 0


async def test_after_the_answers_concurrent_checks_share_few_reads() -> None:
    pods = Pods(*(view(f"p-{number}") for number in range(50)))
    addresses = Addresses(pods.current, pods.read)
    async with asyncio.TaskGroup() as group:
        answers = [group.create_task(addresses.after(one.uid, one.ip)) for one in pods.current]
    assert {answer.result() for answer in answers} == {None}
    assert 1 <= pods.reads <= 2  # checks that start during a read share the next one
    before = pods.reads
    await addresses.after(pods.current[0].uid, pods.current[0].ip)
    assert pods.reads == before + 1


async def test_every_change_of_a_pod_is_noticed() -> None:
    before = view("a", ip="10.0.0.1")
    for current, words in (
        ([], "does not exist any more"),
        ([view("a", uid="of-another", ip="10.0.0.1")], "does not exist any more"),
        ([view("a", ip="10.0.0.2")], "now 10.0.0.2, not 10.0.0.1"),
        ([view("a", ip="10.0.0.1", phase="Failed")], "has ended"),
    ):
        pods = Pods(before)
        addresses = Addresses(pods.current, pods.read)
        pods.current = current
        problem = await addresses.after(before.uid, before.ip)
        assert problem is not None
        assert words in problem


async def test_a_starting_api_server_is_retried_and_a_rejection_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that has not read the roles yet answers 403."""
    pods = Pods(one := view("a"))
    addresses = Addresses(pods.current, pods.read)
    pods.errors = [Unavailable("restarting"), RequestRejected("forbidden", status=403)]
    assert await addresses.after(one.uid, one.ip) is None
    assert pods.reads == 3
    pods.errors = [error_of("GET", "/api/v1/pods", 422, b'{"message": "invalid"}')]
    assert "returned 422: invalid;" in (await addresses.after(one.uid, one.ip) or "")
    monkeypatch.setattr("mldiagnostics_operator.request_retry.FORBIDDEN_S", 0.0)
    pods.errors = [error_of("GET", "/api/v1/pods", 403, b'{"message": "User \\"operator\\" cannot list"}')]
    problem = await addresses.after(one.uid, one.ip) or ""
    assert "returned 403;" in problem
    assert "User" not in problem
