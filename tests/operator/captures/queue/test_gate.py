from __future__ import annotations

import asyncio

import pytest
from mldiagnostics_operator.captures.queue.admission import CaptureClaim, Quota, WaitReason
from mldiagnostics_operator.captures.queue.gate import Gate


class Visitor:
    """A capture that passes the gate and stays inside until `leave` is set."""

    def __init__(self, gate: Gate, uid: str, *, namespace: str = "ml", pods: str = "") -> None:
        self._gate = gate
        self._claim = CaptureClaim(uid, namespace, gate.arrive(), frozenset(pods))
        self.reasons: list[WaitReason] = []
        self.waits = asyncio.Event()
        self.inside = asyncio.Event()
        self.leave = asyncio.Event()

    async def visit(self) -> None:
        async with self._gate.admitted(self._claim, self._report):
            self.inside.set()
            await self.leave.wait()

    async def _report(self, reason: WaitReason) -> None:
        self.reasons.append(reason)
        self.waits.set()


@pytest.fixture
def numbers() -> list[tuple[int, int]]:
    return []


@pytest.fixture
def gate(numbers: list[tuple[int, int]]) -> Gate:
    return Gate(Quota(per_namespace=2, total=3), lambda waiting, inside: numbers.append((waiting, inside)))


async def test_a_capture_waits_until_the_pod_is_free(gate: Gate) -> None:
    first, second = Visitor(gate, "a", pods="pq"), Visitor(gate, "b", pods="q")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(first.visit())
        await first.inside.wait()
        group.create_task(second.visit())
        await second.waits.wait()
        first.leave.set()
        await second.inside.wait()
        second.leave.set()
    assert second.reasons == [WaitReason.POD_BUSY]


async def test_a_reason_is_reported_once_and_again_when_it_changes(gate: Gate) -> None:
    inside = [Visitor(gate, "a", pods="p"), Visitor(gate, "b")]
    late = Visitor(gate, "c", pods="p")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for visitor in inside:
            group.create_task(visitor.visit())
            await visitor.inside.wait()
        group.create_task(late.visit())
        other = Visitor(gate, "d", namespace="other")
        group.create_task(other.visit())
        await other.inside.wait()
        third = Visitor(gate, "e", namespace="third")
        group.create_task(third.visit())
        # The pod is free; the place goes to the earliest claim of a namespace that has not had one.
        inside[0].leave.set()
        await third.inside.wait()
        for visitor in (*inside, other, third, late):
            visitor.leave.set()
    assert late.reasons == [WaitReason.POD_BUSY, WaitReason.CLUSTER_QUOTA]


async def test_the_next_capture_gets_the_place_of_a_cancelled_one(gate: Gate, numbers: list[tuple[int, int]]) -> None:
    running, waiting = Visitor(gate, "a", pods="p"), Visitor(gate, "b", pods="p")
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        task = group.create_task(running.visit())
        await running.inside.wait()
        abandoned = group.create_task(waiting.visit())
        last = Visitor(gate, "c", pods="p")
        group.create_task(last.visit())
        abandoned.cancel()
        task.cancel()
        await last.inside.wait()
        last.leave.set()
    assert numbers[-1] == (0, 0)
    assert not waiting.inside.is_set()
