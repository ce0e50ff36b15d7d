"""Runs of a real API server, with the rights of a user of its kubeconfig."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.store import open_store
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from mldiagnostics_kube.client.failures import ClusterFailure
from mldiagnostics_view.sources.cluster import ClusterSource
from mldiagnostics_view.sources.source import RunUnknown
from support.cluster.definitions import install
from support.cluster.grants import grant
from support.run_files import put_run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

RUN = "4f6c" + 60 * "0"
LIMIT_S = 60
FINDING = {
    "code": "SlowHost",
    "severity": "critical",
    "message": "trainer-0 arrives last",
    "hosts": ["trainer-0"],
    "session": "slow-1",
    "time": "2026-11-23T10:00:00Z",
}


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not holds():  # noqa: ASYNC110 - polls a watch
            await asyncio.sleep(0.02)


async def test_a_user_sees_what_kubectl_shows(
    api_server: ApiServer, admin: ApiClient, namespace: str, gcs_bucket: str, tmp_path: Path
) -> None:
    await install(admin, RUNS)
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "jane"
    config["contexts"][0]["context"]["namespace"] = namespace
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    runs = path_to(*RUNS.gvr, namespace=namespace)
    put_run(open_store(f"gs://{gcs_bucket}/runs"), RUN, name="trainer")
    identity = {"apiVersion": RUNS.api_version, "kind": RUNS.kind}
    stored = {"runId": RUN, "storageLocation": f"gs://{gcs_bucket}/runs"}
    await admin.create(runs, {**identity, "metadata": {"name": "trainer"}, "spec": stored})
    await admin.patch(f"{runs}/trainer/status", {"status": {"runId": RUN, "phase": "Active", "findings": [FINDING]}})
    await admin.create(runs, {**identity, "metadata": {"name": "second"}, "spec": {"runId": "81aa" + 60 * "0"}})
    pod = {"metadata": {"name": "trainer-0", "labels": {RUN_LABEL: run_label(RUN)}}}
    containers = [{"name": "train", "image": "train:1"}]
    await admin.create(path_to("", "v1", "pods", namespace=namespace), {**pod, "spec": {"containers": containers}})

    options = ClusterOptions(kubeconfig=str(kubeconfig))
    rejected = await ClusterSource.connect(options)
    assert list(await rejected.rows()) == []
    assert "you may not list MLRuns here; pass a namespace with -n" in rejected.problem
    await rejected.aclose()

    read = ["get", "list", "watch"]
    mlruns = {"apiGroups": ["diagon.gke.io"], "resources": ["mlruns"], "verbs": read}
    await grant(admin, namespace, "jane", mlruns, {"apiGroups": [""], "resources": ["pods"], "verbs": read})
    await asyncio.wait_for(_may_list(options), LIMIT_S)
    source = await ClusterSource.connect(options)
    listed = {run.key: run.row for run in await source.rows()}
    assert {key: row.phase for key, row in listed.items()} == {
        f"{namespace}:trainer": "Active",
        f"{namespace}:second": "Pending",
    }
    detail = await source.detail(f"{namespace}:trainer")
    assert (detail.row.run_id, len(detail.hosts)) == (RUN, 1)
    assert [(finding.code, finding.hosts) for finding in detail.findings] == [("SlowHost", ("trainer-0",))]
    assert await source.directory(f"{namespace}:trainer") == f"gs://{gcs_bucket}/runs/{RUN}"
    with pytest.raises(ClusterFailure, match=f"does not let you read files of namespace {namespace}; ask the"):
        await source.directory(f"{namespace}:second")

    uid = (await admin.get(f"{runs}/second"))["metadata"]["uid"]
    await admin.delete(f"{runs}/second", uid=uid)
    await until(lambda: len(source._store) == 1)
    with pytest.raises(RunUnknown):
        await source.detail(f"{namespace}:second")
    await source.aclose()


async def _may_list(options: ClusterOptions) -> None:
    """Wait until the API server knows the new rights."""
    while True:
        source = await ClusterSource.connect(options)
        await source.rows()
        problem = source.problem
        await source.aclose()
        if not problem:
            return
