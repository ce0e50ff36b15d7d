from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics_api.matching import Why, match
from mldiagnostics_api.workloads import WORKLOADS, workload_of

ON = {"managed-mldiagnostics-gke": "true"}
OFF = {"managed-mldiagnostics-gke": "false"}
EXEMPT = {"diagon-webhook-exempt": "true"}


@pytest.mark.parametrize(
    ("kind", "of_workload", "of_pod", "of_namespace", "why"),
    [
        ("JobSet", {}, {}, {}, Why.NO_LABEL),
        ("JobSet", ON, {}, {}, Why.WORKLOAD_LABEL),
        ("JobSet", {}, ON, {}, Why.POD_LABEL),
        ("JobSet", {}, {}, ON, Why.NAMESPACE_LABEL),
        ("JobSet", OFF, {}, ON, Why.WORKLOAD_OPTED_OUT),
        ("JobSet", ON, OFF, ON, Why.WORKLOAD_OPTED_OUT),
        ("JobSet", ON, {}, EXEMPT, Why.NAMESPACE_EXEMPT),
        ("RayCluster", {}, {}, ON, Why.NAMESPACE_LABEL),
        ("LeaderWorkerSet", {}, {}, ON, Why.NAMESPACE_LABEL),
        ("Deployment", {}, {}, ON, Why.KIND_NEEDS_OWN_LABEL),
        ("StatefulSet", {}, {}, ON, Why.KIND_NEEDS_OWN_LABEL),
        ("Pod", {}, {}, ON, Why.KIND_NEEDS_OWN_LABEL),
        ("Deployment", ON, {}, {}, Why.WORKLOAD_LABEL),
        ("Pod", {}, ON, {}, Why.POD_LABEL),
        ("JobSet", {"managed-mldiagnostics-gke": "yes"}, {}, {}, Why.NO_LABEL),
    ],
)
def test_the_nearer_label_decides(
    kind: str, of_workload: dict[str, str], of_pod: dict[str, str], of_namespace: dict[str, str], why: Why
) -> None:
    workload = workload_of(kind)
    assert workload is not None
    found = match(workload, labels=of_workload, pod_labels=of_pod, namespace="ml", namespace_labels=of_namespace)
    assert found.why is why
    assert found.opted_in is (why in {Why.WORKLOAD_LABEL, Why.POD_LABEL, Why.NAMESPACE_LABEL})


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
