from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.config import OperatorConfig
from mldiagnostics_operator.runs.controller import RunController
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.definitions import install
from support.cluster.namespaces import Stage
from support.cluster.operating import DEADLINE_S, Namespace
from support.cluster.run_world import JOBS

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

HOUR = timedelta(hours=1)


@pytest.mark.parametrize(("ttl", "late"), [(None, 24 * HOUR), (2 * HOUR, 2 * HOUR), (48 * HOUR, 24 * HOUR)])
async def test_a_workload_whose_run_has_expired_gets_no_run_again(
    cluster: ApiClient, namespace: str, tmp_path: Path, ttl: timedelta | None, late: timedelta
) -> None:
    await install(cluster, RUNS)
    stage = Stage(Namespace(cluster, namespace, "10.0.0.1"), "")
    labels, uids = {"managed-mldiagnostics-gke": "true"}, []
    for name, ended in (("kept", utc_now() - late + HOUR), ("expired", utc_now() - late - HOUR)):
        made = await stage.make("jobset.x-k8s.io/v1alpha2", "JobSet", name, labels=labels, spec=JOBS)
        uids.append(made["metadata"]["uid"])
        done = {"type": "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "done"}
        status = {"conditions": [done | {"lastTransitionTime": format_time(ended)}]}
        path = path_to("jobset.x-k8s.io", "v1alpha2", "jobsets", namespace=namespace, name=name, sub="status")
        await cluster.patch(path, {"status": status})
    config = OperatorConfig(
        watch_namespaces=(namespace,),
        cluster_name="test-cluster",
        runs_ttl_s=int(ttl.total_seconds()) if ttl else None,
    )
    controller = RunController(
        cluster,
        config,
        OperatorMetrics(),
        holder="operator/uid/1",
        storage=Storage(tmp_path),
        backoff=Backoff(shortest_s=0.1, longest_s=0.2, absent_s=0.2),
    )
    running = asyncio.create_task(controller.run())
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not all(map(controller.reconciler.runs.has_ended, uids)):  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.05)
        runs = await cluster.items(path_to(*RUNS.gvr, namespace=namespace), dict)
        assert [run["spec"]["workloadRef"]["name"] for run in runs] == ["kept"]
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
