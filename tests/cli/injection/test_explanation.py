"""Why a pod or a workload has a run, or none."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION
from mldiagnostics_cli.injection.explanation import InjectionState, explain_pod, explain_workload
from support.cluster import builders as a

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
ON = {OPT_IN_LABEL: "true"}
RUN = "38ecfc8a2d254da9e690e33b81bac0358bdcbeddf2e1a373240c1650f1ba3b0c"


def namespace(labels: dict[str, str] | None = None) -> dict[str, Any]:
    return {"metadata": {"name": "ml", "labels": labels or {}}}


def jobset(**parts: Any) -> dict[str, Any]:
    return a.thing("trainer", kind="JobSet", api_version="jobset.x-k8s.io/v1alpha2", namespace="ml", **parts)


@pytest.mark.parametrize(
    ("labels", "of_jobset", "reason", "remedy"),
    [
        ({}, {}, "NoLabel", "kubectl label namespace ml managed-mldiagnostics-gke=true ; then create its pods again"),
        (
            ON,
            {OPT_IN_LABEL: "false"},
            "WorkloadOptedOut",
            "remove the label managed-mldiagnostics-gke=false from the job",
        ),
        (ON | {EXEMPT_NAMESPACE_LABEL: "true"}, {}, "NamespaceExempt", "kubectl label namespace ml diagon-webhook-ex"),
    ],
)
def test_a_workload_that_is_no_run_has_a_reason_and_a_remedy(
    labels: dict[str, str], of_jobset: dict[str, str], reason: str, remedy: str
) -> None:
    explanation = explain_workload(jobset(labels=of_jobset), namespace(labels), (), None)
    assert (explanation.state, explanation.reason) == (InjectionState.NOT_INJECTED, reason)
    assert explanation.remedy.startswith(remedy)


def test_a_workload_that_is_a_run_names_the_variables_of_its_pods() -> None:
    explanation = explain_workload(jobset(), namespace(ON), (), RUN)
    assert (explanation.state, explanation.run_id, explanation.remedy) == (InjectionState.INJECTED, RUN, "")
    assert explanation.message == "the JobSet is a run: namespace ml has the label managed-mldiagnostics-gke=true"
    assert "MLDIAG_RUN_ID" in explanation.variables


def test_a_kind_that_needs_its_own_label_gets_that_command() -> None:
    deployment = a.thing("serve", kind="Deployment", api_version="apps/v1", namespace="ml")
    explanation = explain_workload(deployment, namespace(ON), (), None)
    assert (
        explanation.remedy
        == "kubectl label deployment serve -n ml managed-mldiagnostics-gke=true ; then create its pods again"
    )


def test_the_decision_at_creation_is_that_of_the_pod() -> None:
    marks = {RUN_ANNOTATION: RUN, INJECTION_ANNOTATION: f"Injected: run {RUN} of JobSet trainer: it has the label"}
    explanation = explain_pod(a.pod(annotations=marks), namespace(), (), NOW)
    assert (explanation.state, explanation.run_id) == (InjectionState.INJECTED, RUN)
    assert explanation.message == f"run {RUN} of JobSet trainer: it has the label"


def test_a_pod_from_before_the_label_must_be_created_again() -> None:
    owner = jobset()
    pod = a.pod(owner=owner)
    without = explain_pod(pod, namespace(), (owner,), NOW)
    assert (without.state, without.reason) == (InjectionState.NOT_INJECTED, "NoLabel")
    missed = explain_pod(pod, namespace(ON), (owner,), NOW)
    assert (missed.state, missed.remedy.partition(";")[0]) == (InjectionState.MISSED, "create the pod again")


def test_a_pod_without_a_controller_needs_the_label_on_itself() -> None:
    explanation = explain_pod(a.pod(), namespace(ON), (), NOW)
    assert explanation.remedy == "create the pod again with the label managed-mldiagnostics-gke=true"
