from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics import identity
from mldiagnostics_api.injection import Injection, InjectionSettings, controller_of, decide
from mldiagnostics_api.matching import Explanation, MatchReason, explain, match
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.owners import WorkloadRun, lone_run, owner_chain, run_of
from mldiagnostics_api.workloads import WORKLOADS, workload_of
from support import builders as a

ON = {"managed-mldiagnostics-gke": "true"}
OFF = {"managed-mldiagnostics-gke": "false"}
EXEMPT = {"diagon-webhook-exempt": "true"}


@pytest.mark.parametrize(
    ("kind", "of_workload", "of_pod", "of_namespace", "why"),
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
    kind: str, of_workload: dict[str, str], of_pod: dict[str, str], of_namespace: dict[str, str], why: MatchReason
) -> None:
    workload = workload_of(kind)
    assert workload is not None
    found = match(workload, labels=of_workload, pod_labels=of_pod, namespace="ml", namespace_labels=of_namespace)
    assert found.why is why
    assert found.opted_in is (why in {MatchReason.WORKLOAD_LABEL, MatchReason.POD_LABEL, MatchReason.NAMESPACE_LABEL})


@pytest.mark.parametrize(
    ("namespace", "opted_in"),
    [("kube-system", False), ("kube-public", False), ("gke-managed-system", False), ("default", True)],
)
def test_namespaces_of_the_system_stay_out(namespace: str, *, opted_in: bool) -> None:
    workload = workload_of("JobSet")
    assert workload is not None
    found = match(workload, labels=ON, pod_labels=ON, namespace=namespace, namespace_labels=ON)
    assert found.opted_in is opted_in


label_sets = st.sampled_from([{}, ON, OFF, EXEMPT, ON | EXEMPT])


@given(st.sampled_from(WORKLOADS), label_sets, label_sets, st.sampled_from(["ml", "kube-system"]), label_sets)
def test_nothing_is_opted_in_without_a_true_label_and_nothing_against_an_opt_out(
    workload: object, labels: dict[str, str], pod_labels: dict[str, str], namespace: str, of_namespace: dict[str, str]
) -> None:
    found = match(
        workload,  # type: ignore[arg-type]  # the table's entries
        labels=labels,
        pod_labels=pod_labels,
        namespace=namespace,
        namespace_labels=of_namespace,
    )
    values = [part.get("managed-mldiagnostics-gke") for part in (labels, pod_labels, of_namespace)]
    if found.opted_in:
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


def test_a_workload_that_is_a_run_is_explained_with_its_id_and_what_its_pods_are_told() -> None:
    found = explained(workload("JobSet"), ON)
    assert found.match.why is MatchReason.NAMESPACE_LABEL
    assert found.message == f"JobSet ml/trainer is run {found.run_id}: namespace ml has the label {OPT_IN_LABEL}=true"
    assert {"MLDIAG_RUN_ID", "GKE_DIAGON_METADATA", "MLDIAG_SLICE", "MLDIAG_CONTROL_PLANE_URL"} <= set(found.variables)


def test_what_is_explained_is_what_is_injected() -> None:
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
    found = explained(run, {}, pod["metadata"]["labels"])
    assert [variable["name"] for variable in decision.containers[0].variables] == list(found.variables)
    assert found.run_id == decision.identity.run_id


@pytest.mark.parametrize("who", ["pod", "workload", "namespace"])
def test_a_run_whose_pods_are_left_as_they_are_is_explained(who: str) -> None:
    run, off = workload("JobSet", ON), {"diagon.gke.io/inject": "false"}
    if who == "workload":
        run.workload["metadata"]["annotations"] = off
    annotations = {f"{who}_annotations": off} if who != "workload" else {}
    found = explain(run, namespace="ml", namespace_labels={}, settings=SETTINGS, **annotations)
    assert found.run_id
    assert found.variables == ()
    assert f"pods are not told of it: the {who} has the annotation diagon.gke.io/inject=false" in found.message


@pytest.mark.parametrize(
    ("run", "of_namespace", "pod_labels", "why"),
    [
        (workload("Deployment"), ON, None, MatchReason.KIND_NEEDS_OWN_LABEL),
        (workload("JobSet"), {}, None, MatchReason.NO_LABEL),
        (workload("JobSet"), ON, OFF, MatchReason.WORKLOAD_OPTED_OUT),
        (workload("JobSet", ON), EXEMPT, None, MatchReason.NAMESPACE_EXEMPT),
    ],
)
def test_what_is_no_run_is_explained_without_an_id(
    run: WorkloadRun, of_namespace: dict[str, str], pod_labels: dict[str, str] | None, why: MatchReason
) -> None:
    found = explained(run, of_namespace, pod_labels)
    assert (found.match.why, found.run_id, found.variables) == (why, None, ())
    assert found.match.message in found.message


@pytest.mark.parametrize(
    ("labels", "why", "says"),
    [
        (
            ON,
            MatchReason.NAMESPACE_LABEL,
            "every JobSet, Job, .* is a run; StatefulSet, Deployment, ReplicaSet, Pod need",
        ),
        ({}, MatchReason.NO_LABEL, "only what has it itself"),
        (EXEMPT | ON, MatchReason.NAMESPACE_EXEMPT, "nothing in it is a run"),
    ],
)
def test_a_namespace_is_explained(labels: dict[str, str], why: MatchReason, says: str) -> None:
    found = explained(None, labels)
    assert found.match.why is why
    assert re.search(says, found.message)


def test_a_lone_pod_is_explained_like_a_workload() -> None:
    created = datetime(2026, 4, 24, 3, 4, 5, tzinfo=UTC)
    found = explained(lone_run("notebook", ON, {}, created), {}, ON)
    assert found.run_id == identity.run_id(cluster="c1", namespace="ml", kind="Pod", name="notebook", created=created)


def test_a_kind_that_can_be_no_run_is_refused() -> None:
    with pytest.raises(ValueError, match="DaemonSet of apps/v1"):
        explained(WorkloadRun(a.thing("agent", kind="DaemonSet", api_version="apps/v1")), ON)
