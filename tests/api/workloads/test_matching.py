from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import identity
from mldiagnostics_api.injection import Injection, InjectionSettings, controller_of, decide
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import WORKLOADS, workload_of
from mldiagnostics_api.workloads.matching import Explanation, MatchReason, explain, match
from mldiagnostics_api.workloads.owners import WorkloadRun, lone_run, owner_chain, run_of
from support.cluster import builders as a

ON = {"managed-mldiagnostics-gke": "true"}
OFF = {"managed-mldiagnostics-gke": "false"}
EXEMPT = {"diagon-webhook-exempt": "true"}


@pytest.mark.parametrize(
    ("kind", "of_workload", "of_pod", "of_namespace", "reason"),
    [
        ("JobSet", {}, {}, {}, MatchReason.NO_LABEL),
        ("JobSet", ON, {}, {}, MatchReason.WORKLOAD_LABEL),
        ("JobSet", {}, ON, {}, MatchReason.POD_LABEL),
        ("JobSet", {}, {}, ON, MatchReason.NAMESPACE_LABEL),
        ("JobSet", OFF, {}, ON, MatchReason.WORKLOAD_OPTED_OUT),
        ("JobSet", ON, OFF, ON, MatchReason.WORKLOAD_OPTED_OUT),
        ("JobSet", ON, {}, EXEMPT, MatchReason.NAMESPACE_EXEMPT),
        ("RayCluster", {}, {}, ON, MatchReason.NAMESPACE_LABEL),
        ("LeaderWorkerSet", {}, {}, ON, MatchReason.NAMESPACE_LABEL),
        ("Deployment", {}, {}, ON, MatchReason.KIND_NEEDS_OWN_LABEL),
        ("StatefulSet", {}, {}, ON, MatchReason.KIND_NEEDS_OWN_LABEL),
        ("Pod", {}, {}, ON, MatchReason.KIND_NEEDS_OWN_LABEL),
        ("Deployment", ON, {}, {}, MatchReason.WORKLOAD_LABEL),
        ("Pod", {}, ON, {}, MatchReason.POD_LABEL),
        ("JobSet", {"managed-mldiagnostics-gke": "yes"}, {}, {}, MatchReason.NO_LABEL),
    ],
)
def test_the_nearer_label_decides(
    kind: str, of_workload: dict[str, str], of_pod: dict[str, str], of_namespace: dict[str, str], reason: MatchReason
) -> None:
    workload = workload_of(kind)
    assert workload is not None
    result = match(workload, labels=of_workload, pod_labels=of_pod, namespace="ml", namespace_labels=of_namespace)
    assert result.reason is reason
    assert result.opted_in is (
        reason in {MatchReason.WORKLOAD_LABEL, MatchReason.POD_LABEL, MatchReason.NAMESPACE_LABEL}
    )


@pytest.mark.parametrize(
    ("namespace", "opted_in"),
    [("kube-system", False), ("kube-public", False), ("gke-managed-system", False), ("default", True)],
)
def test_system_namespaces_are_excluded(namespace: str, *, opted_in: bool) -> None:
    workload = workload_of("JobSet")
    assert workload is not None
    result = match(workload, labels=ON, pod_labels=ON, namespace=namespace, namespace_labels=ON)
    assert result.opted_in is opted_in


label_sets = st.sampled_from([{}, ON, OFF, EXEMPT, ON | EXEMPT])


@given(st.sampled_from(WORKLOADS), label_sets, label_sets, st.sampled_from(["ml", "kube-system"]), label_sets)
def test_property_opt_in_needs_a_true_label_and_no_opt_out(
    workload: object, labels: dict[str, str], pod_labels: dict[str, str], namespace: str, of_namespace: dict[str, str]
) -> None:
    result = match(
        workload,  # type: ignore[arg-type]  # the table's entries
        labels=labels,
        pod_labels=pod_labels,
        namespace=namespace,
        namespace_labels=of_namespace,
    )
    values = [part.get("managed-mldiagnostics-gke") for part in (labels, pod_labels, of_namespace)]
    if result.opted_in:
        assert "true" in values
        assert "false" not in values[:2]
        assert namespace == "ml"


SETTINGS = InjectionSettings(cluster="c1", control_plane_url="https://control")


def explained(
    run: WorkloadRun | None, of_namespace: dict[str, str], pod_labels: dict[str, str] | None = None
) -> Explanation:
    return explain(run, namespace="ml", namespace_labels=of_namespace, settings=SETTINGS, pod_labels=pod_labels)


def workload(kind: str, labels: dict[str, str] | None = None) -> WorkloadRun:
    entry = workload_of(kind)
    assert entry is not None
    return WorkloadRun(a.thing("trainer", kind=kind, api_version=entry.api_version, labels=labels))


def test_a_run_is_explained_with_its_id_and_variables() -> None:
    result = explained(workload("JobSet"), ON)
    assert result.match.reason is MatchReason.NAMESPACE_LABEL
    assert result.message == f"JobSet ml/trainer is run {result.run_id}: namespace ml has the label {OPT_IN_LABEL}=true"
    assert {"MLDIAG_RUN_ID", "GKE_DIAGON_METADATA", "MLDIAG_SLICE", "MLDIAG_CONTROL_PLANE_URL"} <= set(result.variables)


def test_the_explanation_equals_the_injection() -> None:
    world = a.jobset(labels=ON)
    pod = world.pods[0]
    pod["spec"]["serviceAccountName"] = "default"
    chain = owner_chain(controller_of(pod, "ml"), world.owners().get, pods=False)
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=chain,
        settings=SETTINGS,
        now=datetime(2026, 11, 21, tzinfo=UTC),
    )
    assert isinstance(decision, Injection)
    run = run_of(chain)
    result = explained(run, {}, pod["metadata"]["labels"])
    assert [variable["name"] for variable in decision.containers[0].variables] == list(result.variables)
    assert result.run_id == decision.identity.run_id


@pytest.mark.parametrize("owner", ["pod", "workload", "namespace"])
def test_a_run_with_disabled_injection_is_explained(owner: str) -> None:
    run, off = workload("JobSet", ON), {"diagon.gke.io/inject": "false"}
    if owner == "workload":
        run.workload["metadata"]["annotations"] = off
    annotations = {f"{owner}_annotations": off} if owner != "workload" else {}
    result = explain(run, namespace="ml", namespace_labels={}, settings=SETTINGS, **annotations)
    assert result.run_id
    assert result.variables == ()
    assert f"its pods are not injected: the {owner} has the annotation diagon.gke.io/inject=false" in result.message


@pytest.mark.parametrize(
    ("run", "of_namespace", "pod_labels", "reason"),
    [
        (workload("Deployment"), ON, None, MatchReason.KIND_NEEDS_OWN_LABEL),
        (workload("JobSet"), {}, None, MatchReason.NO_LABEL),
        (workload("JobSet"), ON, OFF, MatchReason.WORKLOAD_OPTED_OUT),
        (workload("JobSet", ON), EXEMPT, None, MatchReason.NAMESPACE_EXEMPT),
    ],
)
def test_a_workload_that_is_not_a_run_is_explained_without_an_id(
    run: WorkloadRun, of_namespace: dict[str, str], pod_labels: dict[str, str] | None, reason: MatchReason
) -> None:
    result = explained(run, of_namespace, pod_labels)
    assert (result.match.reason, result.run_id, result.variables) == (reason, None, ())
    assert result.match.message in result.message


@pytest.mark.parametrize(
    ("labels", "reason", "expected"),
    [
        (
            ON,
            MatchReason.NAMESPACE_LABEL,
            "every JobSet, Job, .* is a run; StatefulSet, Deployment, ReplicaSet, Pod need",
        ),
        ({}, MatchReason.NO_LABEL, "only workloads with their own label"),
        (EXEMPT | ON, MatchReason.NAMESPACE_EXEMPT, "no workload in it is a run"),
    ],
)
def test_a_namespace_is_explained(labels: dict[str, str], reason: MatchReason, expected: str) -> None:
    result = explained(None, labels)
    assert result.match.reason is reason
    assert re.search(expected, result.message)


def test_a_lone_pod_is_explained_like_a_workload() -> None:
    created = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)
    result = explained(lone_run("notebook", ON, {}, created), {}, ON)
    assert result.run_id == identity.run_id(cluster="c1", namespace="ml", kind="Pod", name="notebook", created=created)


def test_an_unsupported_kind_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"DaemonSet \(apps/v1\): not a supported kind"):
        explained(WorkloadRun(a.thing("agent", kind="DaemonSet", api_version="apps/v1")), ON)
