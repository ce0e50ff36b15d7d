"""Both charts with their defaults work together in either order, on a real API server and without people in between.

The operator's end publishes with the rights of its chart; a webhook process with the rights of its chart injects.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cryptography.x509 import load_pem_x509_certificates
from mldiagnostics_api.injection.control_plane import AUDIENCE
from mldiagnostics_api.names import CONTROL_PLANE_CA_ANNOTATION
from mldiagnostics_kube.certificates.authority import KeyPair
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_operator import config
from mldiagnostics_operator.control_plane.publication import publication
from prometheus_client.parser import text_string_to_metric_families
from release.parts import OPERATOR, WEBHOOK, Part
from release.render import portable, rendered
from support.cluster import builders, kinds
from support.cluster.namespaces import Stage
from support.cluster.operating import Namespace
from support.cluster.reviews import LABEL
from support.cluster.webhook_process import DEADLINE_S, injected, registered, webhook_process
from support.servers.handshakes import shown

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.envtest import ApiServer
    from support.cluster.webhook_process import Process

pytestmark = pytest.mark.apiserver

Object = dict[str, Any]
COLLECTIONS = {
    "ServiceAccount": ("", "serviceaccounts"),
    "Secret": ("", "secrets"),
    "ConfigMap": ("", "configmaps"),
    "Role": ("rbac.authorization.k8s.io", "roles"),
    "RoleBinding": ("rbac.authorization.k8s.io", "rolebindings"),
    "ClusterRole": ("rbac.authorization.k8s.io", "clusterroles"),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io", "clusterrolebindings"),
}
"""Objects that the two ends need; the processes run outside the cluster."""


JOB: Object = {"template": {"spec": {**kinds.CONTAINERS, "restartPolicy": "Never"}}}


class Release:
    """The objects of a chart with its defaults, and the credentials of its service account."""

    def __init__(self, part: Part, cluster: ApiClient, namespace: str) -> None:
        self.objects = portable(rendered(part, release=f"{namespace}-{part.folder}", namespace=namespace))
        self.environment = {
            entry["name"]: entry["value"]
            for item in self.objects
            if item["kind"] == "Deployment"
            for entry in item["spec"]["template"]["spec"]["containers"][0]["env"]
            if "value" in entry
        }
        self._cluster = cluster
        self._made: list[str] = []

    async def install(self) -> None:
        for item in self.objects:
            if item["kind"] in COLLECTIONS:
                group, plural = COLLECTIONS[item["kind"]]
                path = path_to(group, "v1", plural, namespace=item["metadata"].get("namespace"))
                await self._cluster.create(path, item)
                self._made.append(f"{path}/{item['metadata']['name']}")

    async def remove(self) -> None:
        for path in self._made:
            await self._cluster.request("DELETE", path)

    async def token(self) -> str:
        """Return a token of the chart's service account."""
        (account,) = (path for path in self._made if "/serviceaccounts/" in path)
        made = await self._cluster.create(f"{account}/token", {"spec": {}})
        return str(made["status"]["token"])


def kubeconfig(server: ApiServer, token: str, file: Path) -> Path:
    """Write a kubeconfig with a token."""
    document = yaml.safe_load(server.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": token}
    file.write_text(yaml.safe_dump(document))
    return file


def control_plane_of(pod: Object) -> tuple[str, str, str]:
    """Return URL, certificates and audience of the token that a pod was given; empty texts if it has none."""
    variables = {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0].get("env", ())}
    volumes = [volume for volume in pod["spec"].get("volumes", ()) if volume["name"] == "mldiagnostics"]
    sources = [source for volume in volumes for source in volume["projected"]["sources"]]
    audiences = [source["serviceAccountToken"]["audience"] for source in sources if "serviceAccountToken" in source]
    ca = pod["metadata"].get("annotations", {}).get(CONTROL_PLANE_CA_ANNOTATION, "")
    return variables.get("MLDIAG_CONTROL_PLANE_URL", ""), ca, "".join(audiences)


async def new_pod(stage: Stage, owner: Object) -> Object:
    """Create a pod of the Job as a dry run, with the service account that admission would set."""
    reference = builders.owned("trainer", "Job", "batch/v1", uid=owner["metadata"]["uid"])
    body = {
        "metadata": {"name": "trainer-0", "ownerReferences": [reference]},
        "spec": {"serviceAccountName": "default", "containers": [{"name": "train", "image": "train:1"}]},
    }
    path = path_to("", "v1", "pods", namespace=stage.ml.name)
    return await stage.ml.cluster.request("POST", path, query=[("dryRun", "All")], body=body)


async def cached_jobs(process: Process) -> float:
    """Return the number of Jobs in the cache of the process."""
    _, text = await process.get("/metrics")
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    [jobs] = [
        sample.value
        for sample in samples
        if sample.name == "mldiagnostics_webhook_cached_objects" and sample.labels["kind"] == "Job"
    ]
    return jobs


def warnings(process: Process) -> list[str]:
    return [line["message"] for line in process.lines if line["severity"] not in ("INFO", "DEBUG")]


async def test_new_pods_trust_the_operator_whichever_part_is_installed_first(
    api_server: ApiServer, admin: ApiClient, namespace: str, tmp_path: Path
) -> None:
    stage = Stage(Namespace(admin, namespace, ip=""), published="")
    operator, webhook = (Release(part, admin, namespace) for part in (OPERATOR, WEBHOOK))
    settings = config.load(operator.environment | {"MLDIAG_POLICY_FILE": "", "POD_NAMESPACE": namespace})
    environ = webhook.environment | {"MLDIAG_PORT": "0", "MLDIAG_HTTP_PORT": "0"}
    folders = [tmp_path / name for name in ("first", "second")]
    for folder in folders:
        folder.mkdir()
    async with AsyncExitStack() as stack:
        await webhook.install()
        stack.push_async_callback(webhook.remove)
        access = kubeconfig(api_server, await webhook.token(), tmp_path / "webhook")
        first = await stack.enter_async_context(webhook_process(access, folders[0], **environ))
        async with registered(stage, first):
            before = await cached_jobs(first)
            owner = await stage.make("batch/v1", "Job", "trainer", labels=LABEL, spec=JOB)
            async with asyncio.timeout(DEADLINE_S):  # a review waits only a second for an owner that is not cached
                while await cached_jobs(first) == before:  # noqa: ASYNC110 - polls the metrics
                    await asyncio.sleep(0.05)
            pod = await new_pod(stage, owner)
            assert injected(pod)
            assert control_plane_of(pod) == ("", "", "")

            await operator.install()
            stack.push_async_callback(operator.remove)
            leader = kubeconfig(api_server, await operator.token(), tmp_path / "operator")
            client = await ApiClient.connect({"KUBECONFIG": str(leader)})
            stack.push_async_callback(client.aclose)
            serving = await stack.enter_async_context(publication.certificate(client, settings))
            async with asyncio.timeout(DEADLINE_S):
                while not (given := control_plane_of(await new_pod(stage, owner)))[0]:  # noqa: ASYNC110 - polls the pods
                    await asyncio.sleep(0.05)
        host = f"{settings.control_plane_service}.{namespace}.svc"
        url, ca, audience = given
        assert (url, audience) == (f"https://{host}:8443", AUDIENCE)
        trusted = [KeyPair(each, None) for each in load_pem_x509_certificates(ca.encode())]  # type: ignore[arg-type]
        assert shown(serving.context, host, trusted)

        second = await stack.enter_async_context(webhook_process(access, folders[1], **environ))
        async with registered(stage, second):
            assert control_plane_of(await new_pod(stage, owner)) == given
        assert warnings(first) == warnings(second) == []
