"""Authors of schedules through both charts: noted by the webhook, kept by the policy, asked about by the operator."""

import json
import secrets
from collections.abc import Iterator
from typing import Any

import injection_workloads as make
import pytest
from cluster.provider import Provider
from demo.installation import OPERATOR
from demo.kubectl import Kubectl, eventually
from injection_scene import OPTED_IN, placed, temporary_namespace
from mldiagnostics_api.names import AUTHOR_ANNOTATION

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator", "webhook")]

NAMESPACE = f"e2e-authors-{secrets.token_hex(2)}"
HERE = f"--namespace={NAMESPACE}"
AS_ANA = ("--as=ana", "--as-group=research")
BINDING = "rolebinding/ana"
SCHEDULE = {
    "apiVersion": "diagon.gke.io/v1alpha1",
    "kind": "MLDiagnosticsSchedule",
    "metadata": {"name": "each-minute", "namespace": NAMESPACE},
    "spec": {"schedule": {"every": "1m"}, "capture": {"durationMilliseconds": 100}},
}
DEADLINE_S = 180


@pytest.fixture(scope="module")
def running(running_cluster: Provider, kubectl: Kubectl, operator: None, webhook: None) -> Iterator[None]:  # noqa: ARG001 - must exist
    """Run a Job, which is a run, in a namespace where the group of ana may capture."""
    make.load_peers_image(running_cluster)
    with temporary_namespace(kubectl, NAMESPACE, {}):
        role = f"--clusterrole={OPERATOR}-capture"
        kubectl("create", "rolebinding", "ana", role, "--group=research", HERE)
        kubectl.apply(placed(make.job("trainer", labels=OPTED_IN), NAMESPACE))
        yield


@pytest.mark.usefixtures("running")
def test_a_schedule_stops_when_its_author_may_not_capture_any_more(kubectl: Kubectl) -> None:
    kubectl("create", "--filename=-", *AS_ANA, stdin=json.dumps(SCHEDULE))
    made = kubectl.get("mlds", "each-minute", HERE)
    assert made["metadata"]["annotations"][AUTHOR_ANNOTATION].split("\n")[:2] == ["ana", "research"]
    kubectl("annotate", "mlds", "each-minute", f"{AUTHOR_ANNOTATION}=root", "--overwrite", HERE)
    kubectl("label", "mlds", "each-minute", "a=b", HERE)
    kept = kubectl.get("mlds", "each-minute", HERE)["metadata"]["annotations"][AUTHOR_ANNOTATION]
    assert kept == made["metadata"]["annotations"][AUTHOR_ANNOTATION]
    kubectl("delete", BINDING, HERE)

    def stopped() -> dict[str, Any] | None:
        status: dict[str, Any] = kubectl.get("mlds", "each-minute", HERE).get("status") or {}
        conditions: list[dict[str, Any]] = status.get("conditions") or []
        return next((each for each in conditions if each["reason"] == "AuthorNotAllowed"), None)

    ready = eventually(stopped, "the end of the schedule", deadline_s=DEADLINE_S)
    assert "ana, who wrote spec, may not create captures" in ready["message"]
    assert not kubectl.items("mldc", HERE)
