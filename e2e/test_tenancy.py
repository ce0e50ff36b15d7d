"""Several releases on a real API server, each with its own policy and namespaces."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from cluster.envtest import ApiServer, apiserver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import check
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
from release.parts import NAMESPACE, OPERATOR
from release.render import helm, setting
from support.cluster.impersonation import Answer, Requests, until

pytestmark = pytest.mark.apiserver

STRICT = {"policy.strictTenancy": True, "policy.maxDurationSeconds": 60, "policy.allowedPorts": "9999"}
RELEASES = {"strict": ("team-a", STRICT), "open": ("team-b", {})}
"""Watched namespace and other values of each release."""


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with apiserver(controller_manager=True) as running:
        yield running


@pytest.fixture(scope="module")
def requests(server: ApiServer) -> Requests:
    """API server with a strict release for team-a and one with defaults for team-b."""
    requests = Requests(server.kubeconfig)
    for namespace in ("team-a", "team-b", "team-c"):
        assert requests("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}).status == 201
    where = [f"--kubeconfig={server.kubeconfig}", f"--namespace={NAMESPACE}", "--create-namespace"]
    for name, (namespace, values) in RELEASES.items():
        chosen = {"watch.namespaces": [namespace], "crds.enabled": name == "strict"} | values
        arguments = [part for key, value in chosen.items() for part in ("--set-json", setting(key, value))]
        helm("install", name, *where, *arguments, chart=OPERATOR.chart)
    until(lambda: create(requests, "team-a", durationSeconds=61).status == 422, "the strict policy is in force")
    until(lambda: create(requests, "team-b", durationSeconds=3601).status == 422, "the open policy is in force")
    return requests


def capture(**trigger: Any) -> dict[str, Any]:
    return {
        "apiVersion": "diagon.gke.io/v1alpha1",
        "kind": "MLDiagnosticsConnection",
        "metadata": {"name": "probe"},
        "spec": {"triggerCapture": {"podName": "worker-0", **trigger}},
    }


def create(requests: Requests, namespace: str, **trigger: Any) -> Answer:
    """Apply a capture as the administrator, as a dry run."""
    path = f"/apis/diagon.gke.io/v1alpha1/namespaces/{namespace}/mldiagnosticsconnections?dryRun=All"
    return requests("POST", path, capture(**trigger))


@pytest.mark.parametrize(
    "trigger",
    [{"storageLocation": "gs://bucket/profiles"}, {"durationSeconds": 120}, {"capturePort": 9012}],
    ids=str,
)
def test_each_policy_applies_only_in_the_namespaces_of_its_release(requests: Requests, trigger: dict[str, Any]) -> None:
    assert create(requests, "team-a", **trigger).status in (403, 422)
    allowed = create(requests, "team-b", **trigger)
    assert allowed.status == 201, allowed.message
    assert create(requests, "team-c", **trigger).status == 201, "the namespace belongs to no release"


def test_a_strict_refusal_names_the_value_to_change(requests: Requests) -> None:
    refused = create(requests, "team-a", storageLocation="gs://bucket/profiles")
    assert "policy.allowedStorage" in refused.message
    assert "policy.strictTenancy=false" in refused.message
    assert "strictTenancy" not in create(requests, "team-b", storageLocation="/etc").message


def test_an_installation_with_defaults_accepts_the_peers_object(requests: Requests) -> None:
    answer = create(
        requests,
        "team-b",
        podNamespace="team-b",
        capturePort=9999,
        durationSeconds=120,
        profiler="google_cloud_mldiagnostics",
        storageLocation="gs://bucket/profiles",
    )
    assert answer.status == 201, answer.message


BUCKETS = ("bucket", "b", "ab", "abc", "-bucket", "bucket-", "Bucket", "a.b_c", "a" * 222, "a" * 223, "")
SEGMENTS = ("x", "volume:", "pod:", "gs:", ".", "..", "", "s" * 255, "s" * 256, "é")
LOCATIONS = st.builds(
    lambda root, segments: "/".join((root, *segments)),
    st.sampled_from([f"gs://{bucket}" for bucket in BUCKETS] + ["volume://", "volume://x", "pod://", "", "s3://b"]),
    st.lists(st.sampled_from(SEGMENTS), max_size=3),
)
TRIGGERS = st.fixed_dictionaries(
    {},
    optional={
        "podNamespace": st.sampled_from(["team-a", "team-b"]),
        "capturePort": st.sampled_from([9012, 9998, 9999, 10014]),
        "durationSeconds": st.sampled_from([1, 60, 61, 3600, 3601]),
        "storageLocation": LOCATIONS.filter(bool),
        "delivery": st.sampled_from(["Auto", "Operator", "Workload"]),
    },
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trigger=TRIGGERS, release=st.sampled_from(sorted(RELEASES)))
def test_property_admission_and_operator_agree(requests: Requests, trigger: dict[str, Any], release: str) -> None:
    namespace, values = RELEASES[release]
    at_admission = create(requests, namespace, **trigger)
    policy = Policy.parse(json.dumps({key.removeprefix("policy."): value for key, value in values.items()}))
    body = capture(**trigger)
    body["metadata"] |= {"namespace": namespace, "uid": "1"}
    verdict = check(MLDiagnosticsConnection.model_validate(body), policy)
    # Admission does not check whether delivery and storage fit: the plan does.
    accepted = not isinstance(verdict, CaptureRefusal) or verdict.reason is RefusalReason.DELIVERY_IMPOSSIBLE
    assert (at_admission.status == 201) == accepted, (at_admission.message, verdict)
