from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from math import inf
from typing import Any
from uuid import uuid4

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.lease import (
    Leadership,
    Lease,
    LeaseObservation,
    LeaseStep,
    LeaseTiming,
    decide,
    lease_object,
    observe,
)

TIMING = LeaseTiming()
QUICK = LeaseTiming(duration_s=2, renew_deadline_s=1, retry_s=0.1)
CALM = LeaseTiming(duration_s=8, renew_deadline_s=6, retry_s=0.1)
DEADLINE_S = 60


class WriteOutcome(StrEnum):
    """Outcome of a write."""

    ANSWERED = "answered"
    ANSWER_LOST = "answer lost"
    LATE = "late"  # it arrives at the candidate's next turn, before that turn's read
    CRASH = "crash"  # the write arrives, but the writer's container restarts before the response
    RESIGN = "resign"  # a leader that stops


@dataclass
class Candidate:
    """State of one process; `skew` is the offset of its monotonic clock."""

    identity: str
    skew: float
    observation: LeaseObservation | None = None
    leads_until: float = -inf
    late: list[tuple[Lease | None, float]] = field(default_factory=list)


class Election:
    """Candidates and a server that accepts a write only over the current version."""

    def __init__(self, skews: list[float]) -> None:
        self.now = 0.0
        self.version = 0
        self.lease: Lease | None = None
        self.candidates = [Candidate(f"pod-{n}/uid-{n}/1", skew) for n, skew in enumerate(skews)]

    def store(self, read: Lease | None, holder: str) -> bool:
        if (self.lease and self.lease.version) != (read and read.version):
            return False
        self.version += 1
        body = lease_object(read, holder, datetime.now(UTC), TIMING, namespace="n", name="l")
        self.lease = Lease.of({**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}})
        return True

    def turn(self, number: int, outcome: WriteOutcome) -> None:
        one = self.candidates[number % len(self.candidates)]
        for read, started in one.late:
            if self.store(read, one.identity):
                one.leads_until = started + TIMING.renew_deadline_s
        one.late.clear()
        now = self.now + one.skew
        one.observation = observe(one.observation, self.lease, now)
        if decide(one.observation, one.identity, now, TIMING) is LeaseStep.WAIT:
            return
        if outcome is WriteOutcome.RESIGN:
            one.leads_until = -inf
            if self.lease and self.lease.holder == one.identity:
                assert self.store(self.lease, "")
        elif outcome is WriteOutcome.LATE:
            one.late.append((self.lease, self.now))
        elif self.store(self.lease, one.identity) and outcome is WriteOutcome.ANSWERED:
            one.leads_until = self.now + TIMING.renew_deadline_s
        elif outcome is WriteOutcome.CRASH:
            pod, _, process = one.identity.rpartition("/")
            self.candidates[number % len(self.candidates)] = Candidate(f"{pod}/{int(process) + 1}", one.skew)


PAUSES = st.sampled_from([0.0, 1.0, 2.0, 5.0, 9.0, 14.0, 15.0]) | st.floats(0, 20)
TURNS = st.lists(st.tuples(PAUSES, st.integers(0, 3), st.sampled_from(WriteOutcome)), min_size=2, max_size=25)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=4), TURNS)
def test_property_at_most_one_leads_and_it_holds_the_lease(
    skews: list[float], turns: list[tuple[float, int, WriteOutcome]]
) -> None:
    election = Election(skews)
    for pause, number, outcome in turns:
        election.now += pause
        election.turn(number, outcome)
        leaders = [one.identity for one in election.candidates if one.leads_until > election.now]
        assert len(leaders) <= 1
        assert not leaders or (election.lease and election.lease.holder == leaders[0])


def seen(holder: str, **changes: float) -> LeaseObservation:
    return LeaseObservation(Lease(holder=holder, duration_s=changes.get("duration_s", 15), version="7"), since=100.0)


@pytest.mark.parametrize(
    ("observation", "now", "step"),
    [
        (LeaseObservation(None, 100.0), 100.0, LeaseStep.TAKE),
        (seen(""), 100.0, LeaseStep.TAKE),
        (seen("b/u-b/1"), 114.9, LeaseStep.WAIT),
        (seen("b/u-b/1"), 115.0, LeaseStep.TAKE),
        (seen("b/u-b/1", duration_s=60), 159.0, LeaseStep.WAIT),
        (seen("b/u-b/1", duration_s=1), 101.0, LeaseStep.WAIT),
        (seen("a/u-a/1"), 100.0, LeaseStep.RENEW),
        (seen("a/u-a/0"), 100.0, LeaseStep.TAKE),
        (seen("a/u-other/0"), 100.0, LeaseStep.WAIT),
    ],
    ids=[
        "none",
        "released",
        "fresh",
        "silent",
        "its-longer-duration",
        "our-longer-duration",
        "mine",
        "my-earlier-process",
        "namesake",
    ],
)
def test_the_table_of_decisions(observation: LeaseObservation, now: float, step: LeaseStep) -> None:
    assert decide(observation, "a/u-a/1", now, TIMING) is step


def test_processes_outside_a_pod_are_not_earlier_processes() -> None:
    assert decide(seen("local//0"), "local//1", 100.0, TIMING) is LeaseStep.WAIT


@pytest.mark.apiserver
class TestAgainstARealServer:
    @pytest.fixture
    def lease(self, namespace: str) -> str:
        return path_to("coordination.k8s.io", "v1", "leases", namespace=namespace, name="it")

    async def test_one_leads_until_it_resigns(self, cluster: ApiClient, namespace: str, lease: str) -> None:
        one, two = (candidate(cluster, namespace, CALM) for _ in range(2))
        await asyncio.wait_for(one.acquire(), DEADLINE_S)
        waiting, holding = asyncio.create_task(two.acquire()), asyncio.create_task(one.hold())
        before = (await cluster.get(lease))["spec"]
        done, _ = await asyncio.wait((waiting, holding), timeout=1.25 * CALM.duration_s)
        assert not done
        after = (await cluster.get(lease))["spec"]
        assert after["renewTime"] > before["renewTime"]
        assert {**after, "renewTime": 0} == {**before, "renewTime": 0}
        await cancel(holding)
        await one.release()
        await asyncio.wait_for(waiting, CALM.duration_s)
        assert (await cluster.get(lease))["spec"]["leaseTransitions"] == 1
        await one.release()
        assert (await cluster.get(lease))["spec"]["holderIdentity"], "only its holder releases it"

    async def test_hold_returns_when_the_lease_is_lost(self, cluster: ApiClient, namespace: str, lease: str) -> None:
        one = candidate(cluster, namespace, CALM)
        await asyncio.wait_for(one.acquire(), DEADLINE_S)
        holding = asyncio.create_task(one.hold())
        await cluster.patch(lease, {"spec": {"holderIdentity": "another"}})
        await asyncio.wait_for(holding, DEADLINE_S)

    async def test_a_leader_that_stops_renewing_is_replaced(self, cluster: ApiClient, namespace: str) -> None:
        one, two = (candidate(cluster, namespace, CALM) for _ in range(2))
        await asyncio.wait_for(one.acquire(), DEADLINE_S)
        await asyncio.wait_for(two.acquire(), DEADLINE_S)

    async def test_one_of_many_candidates_wins(self, cluster: ApiClient, namespace: str) -> None:
        races = [asyncio.create_task(candidate(cluster, namespace, CALM).acquire()) for _ in range(8)]
        done, others = await asyncio.wait(races, return_when=asyncio.FIRST_COMPLETED)
        more, others = await asyncio.wait(others, timeout=CALM.duration_s / 2)
        assert len(done | more) == 1
        await cancel(*others)


async def test_a_leader_whose_calls_hang_stops_leading_before_its_lease_expires() -> None:
    kept: list[dict[str, Any]] = []
    silent, over = asyncio.Event(), asyncio.Event()

    async def serve(request: web.Request) -> web.Response:
        if silent.is_set():
            await over.wait()
        if request.method != "GET":
            kept[:] = [await request.json()]
            kept[0]["metadata"]["resourceVersion"] = "1"
        return web.json_response(kept[0] if kept else {}, status=200 if kept else 404)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", serve)
    async with TestServer(app) as server:
        cluster = ApiClient(Credentials(str(server.make_url("")).rstrip("/"), fixed("")))
        leader = candidate(cluster, "it")
        await leader.acquire()
        silent.set()
        holding, patient = asyncio.create_task(leader.hold()), asyncio.create_task(cluster.get("/patient"))
        try:
            done, _ = await asyncio.wait((holding, patient), return_when=asyncio.FIRST_COMPLETED)
            assert done == {holding}, "it is a call that others wait for much longer"
            await holding
        finally:
            over.set()
            await asyncio.wait((holding, patient))
            await cluster.aclose()


def candidate(cluster: ApiClient, namespace: str, timing: LeaseTiming = QUICK) -> Leadership:
    return Leadership(cluster, identity=f"p/{uuid4()}/1", namespace=namespace, name="it", timing=timing)


async def cancel(*tasks: asyncio.Task[None]) -> None:
    """Cancel the tasks and wait, so that no connection outlives the client."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
