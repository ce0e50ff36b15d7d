"""Checks of injection in a namespace: its label, and a pod as a dry run."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from mldiagnostics_api.injection import InjectionSettings, trial_pod, trial_result
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.matching import MatchReason, explain
from mldiagnostics_kube.client.apiserver import NOT_PERMITTED, ClusterError, path_to

from mldiagnostics_cli.doctor.finding import broken, fine, unknown

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster import Cluster

    from mldiagnostics_cli.doctor.finding import DoctorFinding


async def check_labels(cluster: Cluster) -> list[DoctorFinding]:
    """Return which workloads of the namespace are runs. Raises `ClusterError`."""
    namespace = cluster.namespace
    read = await cluster.client.get(path_to("", "v1", "namespaces", name=namespace), metadata_only=True)
    labels = read["metadata"].get("labels") or {}
    explanation = explain(None, namespace=namespace, namespace_labels=labels, settings=InjectionSettings(cluster=""))
    if explanation.match.reason in {MatchReason.NAMESPACE_EXCLUDED, MatchReason.NAMESPACE_EXEMPT}:
        return [broken("labels", explanation.message, "run workloads in another namespace")]
    return [fine("labels", explanation.message)]


async def check_injection(cluster: Cluster) -> list[DoctorFinding]:
    """Create a labelled pod as a dry run and look for its run. Raises `ClusterError`."""
    path = path_to("", "v1", "pods", namespace=cluster.namespace)
    body = trial_pod(f"mldiag-doctor-{uuid.uuid4().hex}")
    try:
        pod = await cluster.client.request("POST", path, query=[("dryRun", "All")], body=body)
    except ClusterError as error:
        if error.status not in NOT_PERMITTED:
            raise
        message = f"a labelled pod could not be tried in namespace '{cluster.namespace}': {error.detail or error}"
        return [unknown("injection", message, "choose a namespace with -n where you may create pods")]
    run, reason = trial_result(pod)
    if run:
        return [fine("injection", f"a pod with the label {OPT_IN_LABEL}=true gets run {run[:16]}…")]
    remedy = "kubectl logs -n gke-mldiagnostics deployment/mldiagnostics-injection-webhook"
    return [broken("injection", f"a labelled pod gets no run: {reason}", remedy)]
