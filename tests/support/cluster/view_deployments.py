"""The deployed view on a real API server: its account as the chart makes it, and the runs of a namespace."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import yaml
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import Conflict, path_to
from release.parts import NAMESPACE, OPERATOR
from release.render import rendered
from support.cluster.charts import one
from support.cluster.definitions import install
from support.cluster.grants import GROUP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer

SECRET = "the secret of the proxy"
HOST = "view.example.com"
PROXY = {"userHeader": "X-Forwarded-User", "groupsHeader": "X-Forwarded-Groups", "secretName": "s"}


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Return the variables of a server behind a proxy; its secret is in the folder, after a former one."""
    (folder / "secret").write_text(f"former\n{SECRET}\n")
    return {
        "MLDIAG_VIEW_PORT": "0",
        "MLDIAG_VIEW_HOSTS": HOST,
        "MLDIAG_VIEW_USER_HEADER": PROXY["userHeader"],
        "MLDIAG_VIEW_GROUPS_HEADER": PROXY["groupsHeader"],
        "MLDIAG_VIEW_SECRET_FILE": str(folder / "secret"),
        **more,
    }


@asynccontextmanager
async def run_namespace(api_server: ApiServer) -> AsyncIterator[tuple[ApiClient, str]]:
    """Yield a client and a new namespace, on an API server that knows runs and captures."""
    admin = await ApiClient.connect({"KUBECONFIG": str(api_server.kubeconfig)})
    try:
        await install(admin, RUNS)
        await install(admin)
        name = f"test-{uuid4().hex[:8]}"
        await admin.create(path_to("", "v1", "namespaces"), {"metadata": {"name": name}})
        yield admin, name
    finally:
        await admin.aclose()


async def make_run(admin: ApiClient, namespace: str, name: str, run_id: str, *, pods: int = 1) -> None:
    """Make an MLRun with pods that run."""
    body = {"apiVersion": RUNS.api_version, "kind": RUNS.kind, "metadata": {"name": name}}
    await admin.create(path_to(*RUNS.gvr, namespace=namespace), {**body, "spec": {"runId": run_id}})
    path = path_to("", "v1", "pods", namespace=namespace)
    for index in range(pods):
        pod = name if pods == 1 else f"{name}-{index}"
        labels = {"metadata": {"name": pod, "labels": {RUN_LABEL: run_label(run_id)}}}
        await admin.create(path, {**labels, "spec": {"containers": [{"name": "train", "image": "train:1"}]}})
        await admin.patch(f"{path}/{pod}/status", {"status": {"phase": "Running"}})


async def start_run(admin: ApiClient, namespace: str, name: str) -> None:
    """Make a run active."""
    path = path_to(*RUNS.gvr, namespace=namespace, name=name, sub="status")
    await admin.patch(path, {"status": {"phase": "Active"}})


async def account_of_chart(
    api_server: ApiServer, admin: ApiClient, folder: Path, *, release: str = OPERATOR.name, **view: Any
) -> ApiClient:
    """Return a client that has the rights of the view's service account of a release, and no others."""
    objects = rendered(OPERATOR, {"view": {"enabled": True, "proxy": PROXY, **view}}, release=release)
    [name] = {each["metadata"]["name"] for each in objects if each["kind"] == "Service" and "web-view" in str(each)}
    for kind in ("ClusterRole", "ClusterRoleBinding"):
        with suppress(Conflict):
            await admin.create(path_to(GROUP, "v1", f"{kind.lower()}s"), one(objects, kind, name))
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = f"system:serviceaccount:{NAMESPACE}:{name}"
    (folder / "kubeconfig").write_text(yaml.safe_dump(config))
    return await ApiClient.connect({"KUBECONFIG": str(folder / "kubeconfig")})
