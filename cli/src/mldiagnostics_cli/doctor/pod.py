"""Checks of one pod: injection, profiler port, network, and reports."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from mldiagnostics.capture.addresses import DEFAULT_PORT
from mldiagnostics.capture.grpc_call import CallError
from mldiagnostics.capture.model import Target
from mldiagnostics.capture.profiler_client import ProfilerClient
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.names import RUN_LABEL, RunConditionType
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_cli.cluster.objects import read_object
from mldiagnostics_cli.cluster.port_forward import PodPort, forwarded
from mldiagnostics_cli.doctor.finding import broken, fine, unknown
from mldiagnostics_cli.doctor.network import network_finding
from mldiagnostics_cli.injection.explanation import InjectionState
from mldiagnostics_cli.injection.reading import explain_object

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.cluster.objects import ObjectName
    from mldiagnostics_cli.doctor.finding import DoctorFinding

    Object = dict[str, Any]


PROBE_S = 10.0


async def choose_pod(cluster: Cluster, name: ObjectName) -> Object:
    """Return the pod that is named, or a pod of the workload, rather a running one.

    Raises:
        ConfigurationError: There is no such object, or the workload has no pods.
        ClusterError: It cannot be read.
    """
    found = await read_object(cluster, name)
    if name.is_pod:
        return found
    selector = name.kind.pods(found)
    pods: list[Object] = []
    if selector:
        path = path_to("", "v1", "pods", namespace=cluster.namespace)
        pods = await cluster.client.items(path, lambda pod: pod, labels=selector)
    if not pods:
        raise ConfigurationError(
            f"{name.text}: has no pods in namespace '{cluster.namespace}'; name a pod, or see mldiag explain"
        )
    first = min(pods, key=lambda pod: (PodView.of(pod).phase != "Running", pod["metadata"]["name"]))
    return {**first, "apiVersion": "v1", "kind": "Pod"}


async def check_pod_injection(cluster: Cluster, name: ObjectName, pod: Object) -> list[DoctorFinding]:
    """Check whether a pod has a run. Raises `ClusterError`."""
    explanation = await explain_object(cluster, name, pod)
    part = f"run of {explanation.object.partition('/')[2]}"
    if explanation.state is InjectionState.INJECTED:
        return [fine(part, explanation.message)]
    remedy = explanation.remedy or f"mldiag explain {pod['metadata']['name']} -n {cluster.namespace}"
    return [broken(part, explanation.message, remedy)]


async def check_pod_network(cluster: Cluster, pod: Object, operator_namespace: str) -> list[DoctorFinding]:
    """Check the NetworkPolicies around a pod. Raises `ClusterError`."""
    path = path_to("networking.k8s.io", "v1", "networkpolicies", namespace=cluster.namespace)
    policies: list[Object] = await cluster.client.items(path, lambda policy: policy)
    return [network_finding(pod, _port(pod), policies, operator_namespace)]


async def check_pod_port(cluster: Cluster, pod: Object) -> list[DoctorFinding]:
    """Probe the profiler server of a pod through the API server.

    Raises `ClusterError`.
    """
    view, port = PodView.of(pod), _port(pod)
    part = "profiler"
    if view.phase != "Running" or not view.live:
        remedy = f"kubectl describe pod {view.name} -n {view.namespace}"
        return [broken(part, f"the pod is {view.phase}, so nothing listens on port {port}", remedy)]
    failures: list[ClusterError] = []

    async def find() -> PodPort:
        return PodPort(view.namespace, view.name, port)

    try:
        async with (
            asyncio.timeout(PROBE_S),
            forwarded(cluster.client, find, on_failure=failures.append) as local,
            aclosing(ProfilerClient(Target("127.0.0.1", local, view.name))) as profiler,
        ):
            has_snapshots = await profiler.knows_snapshots(timeout_s=PROBE_S)
    except (CallError, TimeoutError) as error:
        if failures and failures[0].status:
            return [unknown(part, f"port {port} could not be tried: {failures[0].detail or failures[0]}")]
        detail = str(failures[0]) if failures else str(error) or "no response in time"
        start = f"call jax.profiler.start_server({port}), or xprof.start_server of the SDK, in the program"
        return [broken(part, f"port {port}: no profiler server responds: {' '.join(detail.split())[:160]}", start)]
    if has_snapshots:
        return [fine(part, f"port {port}: a profiler server responds")]
    message = f"port {port}: the profiler server has no GetSnapshot (jaxlib < 0.9?), a capture may freeze the process"
    return [broken(part, message, "upgrade jaxlib to 0.9 or later, or capture with --allow-old-server")]


async def check_pod_reports(cluster: Cluster, pod: Object) -> list[DoctorFinding]:
    """Check what the run of a pod reports to the control plane. Raises `ClusterError`."""
    label = (pod["metadata"].get("labels") or {}).get(RUN_LABEL)
    part = "reports"
    if not label:
        return [unknown(part, "the pod has no run, so nothing is known about its SDK")]
    path = path_to(*RUNS.gvr, namespace=cluster.namespace)
    runs: list[Object] = await cluster.client.items(path, lambda run: run, labels=f"{RUN_LABEL}={label}", most=1)
    if not runs:
        return [unknown(part, f"no MLRun has the label {RUN_LABEL}={label}", "see the line of the operator above")]
    return [_condition(runs[0], kind) for kind in (RunConditionType.REPORTING, RunConditionType.PROFILABLE)]


def _condition(run: Object, kind: str) -> DoctorFinding:
    conditions = (run.get("status") or {}).get("conditions") or ()
    found = next((each for each in conditions if each["type"] == kind), None)
    part, name = kind.lower(), run["metadata"]["name"]
    if found is None or found["status"] == "Unknown":
        return unknown(part, f"MLRun {name}: {found['message'] if found else 'has no such condition'}")
    if found["status"] == "True":
        return fine(part, f"MLRun {name}: {found['message']}")
    remedy = f"see the program's log for lines that start with 'mldiagnostics:' ; mldiag runs get {name} --hosts"
    return broken(part, f"MLRun {name}: {found['message']} ({found['reason']})", remedy)


def _port(pod: Object) -> int:
    """Return the first profiler port that a pod publishes, or the usual one."""
    view = PodView.of(pod)
    published = (view.published_ports or "").partition(",")[0].strip()
    if published.isdigit():
        return int(published)
    return next((port for container in view.containers for port in container.profiler_ports), DEFAULT_PORT)
