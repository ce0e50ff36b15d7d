"""Runs in a queue of Kueue, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.cluster.operating import condition
from support.cluster.run_world import Queue, attempt

if TYPE_CHECKING:
    from support.cluster.run_world import World

pytestmark = pytest.mark.apiserver


async def test_kueue_says_why_a_run_waits_and_why_it_is_interrupted(world: World) -> None:
    await world.start(labels={"kueue.x-k8s.io/queue-name": "tpu"}, suspend=True)
    run = await world.until(lambda run: run.get("status", {}).get("reason") == "Queued")
    assert condition(run["status"], "Admitted")["reason"] == "Queued"  # Kueue is not installed
    queue = await Queue.of(world)
    short = "couldn't assign flavors to pod set workers: insufficient unused quota for google.com/tpu, 4 more needed"
    await queue.set(QuotaReserved=("False", "Pending", short))
    run = await world.until(lambda run: run["status"]["message"] == f"the JobSet waits in queue tpu: {short}")
    assert condition(run["status"], "Admitted")["reason"] == "Pending"
    await queue.set(QuotaReserved=("True", "QuotaReserved", "reserved"), Admitted=("True", "Admitted", "is admitted"))
    await queue.suspend(suspended=False)
    await world.pod("w-0", "node-0")
    await world.pod("w-1", "node-1")
    await world.set_jobset(restarts=0, ready=2)
    run = await world.until(lambda run: attempt(run, 0).get("startUp", {}).get("startedTime"))
    assert condition(run["status"], "Admitted")["status"] == "True"
    why = "Preempted to accommodate a workload (UID: 5c0) due to prioritization in the ClusterQueue"
    await queue.set(
        Evicted=("True", "Preempted", why),
        Preempted=("True", "InClusterQueue", why),
        QuotaReserved=("False", "Pending", "waits"),
        Admitted=("False", "NoReservation", "The workload has no reservation"),
    )
    await queue.suspend(suspended=True)
    for name in ("w-0", "w-1"):
        await world.ml.remove_pod(name)
    await world.set_jobset(restarts=0, ready=0)
    run = await world.until(lambda run: attempt(run, 0).get("cause") == "Preemption")
    assert attempt(run, 0)["causeMessage"] == f"Workload 'jobset-trainer': Preempted: {why}"
    assert (run["status"]["phase"], condition(run["status"], "Admitted")["reason"]) == ("Pending", "Preempted")
    assert run["status"]["message"] == f"the JobSet waits in queue tpu: {why}; waits"
    await queue.set(
        Evicted=("False", "QuotaReserved", "Previously: preempted"),
        QuotaReserved=("True", "QuotaReserved", "reserved"),
        Admitted=("True", "Admitted", "is admitted"),
    )
    await queue.suspend(suspended=False)
    await world.set_jobset(restarts=0, ready=2)
    run = await world.until(lambda run: len(run["status"]["attempts"]) == 2)
    assert [(each["attempt"], each.get("cause")) for each in run["status"]["attempts"]] == [
        (0, "Preemption"),
        (1, None),
    ]
    await world.events("Disrupted", "Suspended")
