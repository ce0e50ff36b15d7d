"""Runs whose pods a quota refuses, on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.cluster.namespaces import Stage
from support.cluster.operating import condition
from support.cluster.run_world import JOB

if TYPE_CHECKING:
    from support.cluster.run_world import World

pytestmark = pytest.mark.apiserver


async def test_a_run_says_that_a_quota_refuses_its_pods(world: World) -> None:
    await world.start()
    stage = Stage(world.ml, "")
    part = await stage.make("batch/v1", "Job", "trainer-workers-0", spec=JOB, owner=world.jobset)
    other = await stage.make("batch/v1", "Job", "other", spec=JOB)
    refused = 'Error creating: pods "w-0" is forbidden: exceeded quota: team, requested: pods=1, used: pods=0, limited'
    for number, job in enumerate((other, part)):
        await world.event(job, "FailedCreate", f"{refused}: pods={number}")
    run = await world.until(lambda run: run["status"]["reason"] == "QuotaExceeded")
    message = f"0 of 2 pods created; job 'trainer-workers-0': FailedCreate: {refused}: pods=1"
    assert run["status"]["message"] == message
    started = condition(run["status"], "Started")
    assert (started["status"], started["reason"], started["message"]) == ("False", "QuotaExceeded", message)
    await world.pod("w-0", "node-0")
    await world.pod("w-1", "node-1")
    await world.set_jobset(restarts=0, ready=2)
    run = await world.until(lambda run: run["status"]["phase"] == "Active" and run["status"]["reason"] == "Running")
    events = await world.events("QuotaExceeded", "Started")
    assert events.index("QuotaExceeded") < events.index("Started")
