"""Workloads that the label of a pod opts in, on a real API server, also after failures."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.workloads.kinds import LONE_POD, workload_of
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator.runs import reconciler
from mldiagnostics_operator.runs.keys import WorkloadKey
from support.cluster import builders
from support.cluster.namespaces import Stage
from support.cluster.operating import DEADLINE_S
from support.cluster.run_world import JOB, JOBS

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.cluster.run_world import World

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
JOBSETS = "jobset.x-k8s.io/v1alpha2"


async def until(holds: Callable[[], object]) -> None:
    """Wait until the controller has come to a state."""
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110 - watches and workers set it
            await asyncio.sleep(0.02)


async def make_jobset(world: World) -> Object:
    """Make a JobSet without label; return its Job."""
    stage = Stage(world.ml, "")
    world.jobset = await stage.make(JOBSETS, "JobSet", "trainer", spec=JOBS)
    return await stage.make("batch/v1", "Job", "trainer-workers-0", spec=JOB, owner=world.jobset)


async def make_pod(world: World, name: str, job: Object) -> WorkloadKey:
    """Make a labelled pod; return its key once it is watched."""
    body = builders.pod(name, namespace=world.ml.name, labels={OPT_IN_LABEL: "true"}, owner=job)
    await world.ml.put(path_to("", "v1", "pods", namespace=world.ml.name), body)
    workloads = world.controller.reconciler.watches.workloads
    await until(lambda: workloads.find(LONE_POD, world.ml.name, name))
    observed = workloads.find(LONE_POD, world.ml.name, name)
    assert observed is not None
    return WorkloadKey.of(observed)


async def runs_of(world: World) -> list[Object]:
    return await world.ml.cluster.items(path_to(*RUNS.gvr, namespace=world.ml.name), dict)


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_pod_that_once_failed_to_opt_its_workload_in_or_the_next_one_does(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, *, is_gone: bool
) -> None:
    monkeypatch.setattr(reconciler, "FAULT_RETRY_S", 0.1)
    await world.limit_runs(0)
    job = await make_jobset(world)
    await make_pod(world, "first", job)
    await until(lambda: "exceeded quota" in caplog.text)
    if is_gone:
        await world.ml.remove_pod("first")
        workloads = world.controller.reconciler.watches.workloads
        await until(lambda: workloads.find(LONE_POD, world.ml.name, "first") is None)
        await make_pod(world, "second", job)
    await world.limit_runs(1)
    run = await world.until(lambda run: run["spec"].get("workloadRef"))
    assert run["spec"]["workloadRef"]["uid"] == world.jobset["metadata"]["uid"]


async def test_a_pod_opts_in_the_jobset_above_a_job_that_was_decided_before(world: World) -> None:
    job = await make_jobset(world)
    kind, workloads = workload_of("Job", "batch/v1"), world.controller.reconciler.watches.workloads
    assert kind is not None
    await until(lambda: workloads.find(kind, world.ml.name, "trainer-workers-0"))
    await world.controller.reconciler.reconcile(
        WorkloadKey(job["metadata"]["uid"], kind, world.ml.name, "trainer-workers-0")
    )
    await make_pod(world, "first", job)
    run = await world.until(lambda run: run["spec"].get("workloadRef"))
    assert run["spec"]["workloadRef"]["uid"] == world.jobset["metadata"]["uid"]


async def test_a_workload_whose_run_has_ended_gets_no_other_by_its_pods(world: World) -> None:
    key = await make_pod(world, "first", await make_jobset(world))
    run = await world.until(lambda run: run["spec"].get("workloadRef"))
    await world.complete_jobset()
    runs, uid = world.controller.reconciler.runs, world.jobset["metadata"]["uid"]
    await until(lambda: runs.has_ended(uid))
    [ended] = runs.all
    world.controller.reconciler.forget(ended)
    path = path_to(*RUNS.gvr, namespace=world.ml.name, name=run["metadata"]["name"])
    await world.ml.cluster.delete(path, uid=run["metadata"]["uid"])
    await world.controller.reconciler.reconcile(key)
    assert await runs_of(world) == []
