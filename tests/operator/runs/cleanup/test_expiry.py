from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.runs.cleanup.expiry import RunExpiry
from mldiagnostics_operator.runs.run import run_manifest
from mldiagnostics_operator.runs.status.write_rate import WriteRate
from support.cluster.definitions import install

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver


async def test_ended_runs_are_deleted_by_age_and_number_and_others_stay(cluster: ApiClient, namespace: str) -> None:
    await install(cluster, RUNS)
    path = path_to(*RUNS.gvr, namespace=namespace)
    runs = {"old": (1, "Failed", 0), "long": (2, "Failed", 10**6), "surplus": (3, "Completed", None)}
    runs |= {"newest": (4, "Completed", None), "active": (1, "Active", 0)}
    now = utc_now()
    for name, (minute, phase, ttl_s) in runs.items():
        body = run_manifest(name, namespace, name)
        if ttl_s is not None:
            body["spec"]["retention"] = {"ttlSecondsAfterFinished": ttl_s}
        await cluster.create(path, body)
        end = now - timedelta(hours=1) + timedelta(minutes=minute)
        ended = {} if phase == "Active" else {"completionTime": end.strftime("%Y-%m-%dT%H:%M:%SZ")}
        await cluster.patch(f"{path}/{name}/status", {"status": {"phase": phase, **ended}})
    expiry = RunExpiry(cluster, [namespace], WriteRate(), ttl_s=None, keep=1, clock=utc_now)
    await expiry.sweep()
    assert set(await cluster.items(path, lambda body: body["metadata"]["name"])) == {"long", "newest", "active"}
