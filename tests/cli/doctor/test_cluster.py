"""The doctor on a real API server: an installation that works, and each way in which it is broken."""

from __future__ import annotations

import base64
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES
from mldiagnostics_cli.doctor import container as container_check
from mldiagnostics_cli.doctor import pod
from mldiagnostics_cli.doctor.cluster import check_cluster
from mldiagnostics_cli.doctor.finding import DoctorFinding, State
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.cluster_options import ClusterOptions
from support.cluster.definitions import install
from support.cluster.namespaces import Stage
from support.cluster.operating import Namespace
from support.cluster.webhook_process import CONFIGURATIONS, registered, webhook_process
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from cluster.envtest import ApiServer
    from mldiagnostics_kube.client.api_client import ApiClient

pytestmark = pytest.mark.apiserver

JOB = {"template": {"spec": {"containers": [{"name": "train", "image": "train:1"}], "restartPolicy": "Never"}}}

Findings = dict[str, list[DoctorFinding]]


async def diagnosed(api_server: ApiServer, namespace: str, target: str | None = None, **changes: Any) -> Findings:
    """Return the findings by their parts."""
    async with connect(
        ClusterOptions(namespace=namespace, kubeconfig=str(api_server.kubeconfig), **changes)
    ) as cluster:
        by_part: Findings = defaultdict(list)
        for finding in await check_cluster(cluster, target):
            by_part[finding.part].append(finding)
        return by_part


def deployment(container: str, available: int = 2, version: str = "99.0.0") -> dict[str, Any]:
    labels = {"app.kubernetes.io/part-of": "mldiagnostics", "app.kubernetes.io/version": version, "app": container}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": container, "image": "none"}]}}
    return {
        "metadata": {"name": f"mldiagnostics-{container}", "labels": labels},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": container}}, "template": template},
        "status": {"replicas": 2, "availableReplicas": available, "readyReplicas": available},
    }


@pytest.fixture
async def deployments(admin: ApiClient, namespace: str) -> AsyncIterator[str]:
    """Deployments of operator and webhook, which no controller runs; they are deleted after the test."""
    path = path_to("apps", "v1", "deployments", namespace=namespace)
    made = []
    for container in ("operator", "webhook"):
        body = deployment(container)
        made.append(await admin.create(path, body))
        await admin.patch(f"{path}/{body['metadata']['name']}/status", {"status": body["status"]})
    yield path
    for each in made:
        await admin.delete(f"{path}/{each['metadata']['name']}", uid=each["metadata"]["uid"])


async def test_a_whole_installation_is_fine_and_each_fault_of_it_is_found(
    api_server: ApiServer, admin: ApiClient, namespace: str, deployments: str, tmp_path: Path
) -> None:
    await install(admin, CONNECTIONS)
    await install(admin, RUNS)
    await install(admin, SCHEDULES)
    stage = Stage(Namespace(admin, namespace, ip="10.0.0.7"), published="")
    async with webhook_process(api_server.kubeconfig, tmp_path) as process, registered(stage, process) as name:
        by_part = await diagnosed(api_server, namespace)
        states = {part: {finding.state for finding in findings} for part, findings in by_part.items()}
        assert {part for part, state in states.items() if state != {State.FINE}} == set(), by_part
        assert [finding.message for finding in by_part["resources"]] == [
            "MLDiagnosticsConnection: installed",
            "MLRun: installed",
            "MLDiagnosticsSchedule: installed",
        ]
        assert "gets run" in by_part["injection"][0].message

        bundle = base64.b64encode(b"").decode()
        entries = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
        await admin.patch(f"{CONFIGURATIONS}/{name}", entries, content_type="application/json-patch+json")
        await admin.patch(
            f"{deployments}/mldiagnostics-operator/status", {"status": {"availableReplicas": 0, "readyReplicas": 0}}
        )
        by_part = await diagnosed(api_server, namespace)
    [operator], [certificate] = by_part["operator"], by_part["certificate"]
    assert (operator.state, certificate.state) == (State.BROKEN, State.BROKEN)
    assert "0 of 2 replicas are available" in operator.message
    assert operator.remedy.startswith(f"kubectl describe -n {namespace} deployment/mldiagnostics-operator")
    assert "has no certificate authority" in certificate.message
    [without_webhook] = (await diagnosed(api_server, namespace))["injection"]
    assert without_webhook.state is State.BROKEN
    assert "a labelled pod gets no run: the webhook was not called" in without_webhook.message


async def test_a_schedule_that_no_operator_reads_is_named(
    api_server: ApiServer, admin: ApiClient, namespace: str
) -> None:
    await install(admin, SCHEDULES)
    body = {"apiVersion": SCHEDULES.api_version, "kind": SCHEDULES.kind, "metadata": {"name": "often"}}
    await admin.create(path_to(*SCHEDULES.gvr, namespace=namespace), {**body, "spec": {"schedule": {"every": "6h"}}})
    [finding] = (await diagnosed(api_server, namespace))["schedules"]
    assert (finding.state, finding.message) == (State.UNKNOWN, "often: no operator has read it yet")


async def test_a_cluster_without_the_product_names_the_charts(api_server: ApiServer, namespace: str) -> None:
    by_part = await diagnosed(api_server, namespace)
    for part in ("operator", "webhook"):
        [finding] = by_part[part]
        assert finding.state is State.BROKEN
        assert finding.remedy.startswith("helm install mldiagnostics-")
    assert by_part["control plane"][0].state is State.FINE


async def test_a_caller_without_rights_gets_the_commands_that_grant_them(
    api_server: ApiServer, namespace: str, tmp_path: Path
) -> None:
    config = yaml.safe_load(api_server.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = "jane"
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(yaml.safe_dump(config))
    mldiag = CommandLine(tmp_path, env={"KUBECONFIG": str(kubeconfig)})
    ended = mldiag.run("doctor", "-n", namespace, "-o", "yaml")
    assert ended.code == 1, ended.err
    by_part = {each["part"]: each for each in yaml.safe_load(ended.out)}
    assert by_part["right to capture"]["state"] == "broken"
    assert by_part["right to capture"]["remedy"] == (
        f"an administrator runs: kubectl create rolebinding mldiag-capture -n {namespace} "
        "--clusterrole=mldiagnostics-connection-operator-capture --user=jane"
    )
    for part in ("operator", "certificate", "labels", "injection"):
        assert by_part[part]["state"] == "unknown", by_part[part]
    assert by_part["client"]["state"] == "fine"


async def test_a_pod_without_a_label_behind_a_network_policy(
    api_server: ApiServer, admin: ApiClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod, "PROBE_S", 0.5)  # no kubelet will ever forward the port or run a program
    monkeypatch.setattr(container_check, "PROBE_S", 0.5)
    await install(admin, RUNS)
    ml = Namespace(admin, namespace, ip="10.0.0.7")
    job = await Stage(ml, published="").make("batch/v1", "Job", "trainer", spec=JOB)
    await Stage(ml, published="10001").pod("trainer-0", owner=job, labels={"app": "trainer"})
    closed = {"podSelector": {"matchLabels": {"app": "trainer"}}, "ingress": [{"ports": [{"port": 80}]}]}
    policies = path_to("networking.k8s.io", "v1", "networkpolicies", namespace=namespace)
    await admin.create(policies, {"metadata": {"name": "closed"}, "spec": closed})
    by_part = await diagnosed(api_server, namespace, "trainer-0")
    [run], [network], [profiler] = by_part["run of trainer-0"], by_part["network"], by_part["profiler"]
    assert (run.state, network.state) == (State.BROKEN, State.BROKEN)
    assert run.message == f"neither the Job nor namespace {namespace} has the label {OPT_IN_LABEL}=true"
    assert run.remedy.startswith(f"kubectl label namespace {namespace} {OPT_IN_LABEL}=true")
    assert network.message == "port 10001: closed by NetworkPolicy closed"
    assert profiler.state is not State.FINE
    assert by_part["sdk of the pod"][0].state is State.UNKNOWN
    with pytest.raises(ConfigurationError, match="pod/nobody: not found in namespace"):
        await diagnosed(api_server, namespace, "nobody")
