from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from cluster.paths import REPOSITORY
from mldiagnostics.capture.model import Delivery
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import CaptureRequest, check
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection
from support.cluster import builders as a

if TYPE_CHECKING:
    from pathlib import Path

POLICY = Policy.parse(
    json.dumps(
        {
            "defaultStorage": "gs://profiles",
            "allowedStorage": {"*": ["volume:///"], "ml": ["gs://profiles/ml", "/tmp/profiles"]},
            "strictTenancy": True,
            "crossNamespaces": ["shared"],
            "maxDurationSeconds": 60,
        }
    )
)


def check_with(policy: Policy = POLICY, **trigger: Any) -> CaptureRequest | CaptureRefusal:
    return check(a.parsed(a.connection(**trigger)), policy)


def accepted(policy: Policy = POLICY, **trigger: Any) -> CaptureRequest:
    request = check_with(policy, **trigger)
    assert isinstance(request, CaptureRequest), request
    return request


WORKLOAD = {"workloadRef": {"kind": "JobSet", "name": "trainer"}}


@pytest.mark.parametrize(
    ("trigger", "reason", "named"),
    [
        ({"podName": "a", "target": WORKLOAD}, RefusalReason.INVALID, "podName and target"),
        ({"durationSeconds": 1}, RefusalReason.INVALID, "podName and target"),
        (
            {"podName": "a", "durationSeconds": 1, "durationMilliseconds": 1},
            RefusalReason.INVALID,
            "durationMilliseconds",
        ),
        ({"podName": "a", "pulse": True, "diagnosis": "Off"}, RefusalReason.INVALID, "pulse"),
        ({"podName": "a", "pulse": True, "recording": "Past"}, RefusalReason.INVALID, "pulse"),
        ({"podName": "a", "pulse": True, "durationSeconds": 11}, RefusalReason.INVALID, "at most 10000 ms"),
        ({"podName": "a", "pulse": True, "durationMilliseconds": 10_001}, RefusalReason.INVALID, "at most 10000 ms"),
        (
            {"podName": "a", "pulse": True, "storageLocation": "/tmp/profiles"},
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "pulse",
        ),
        (
            {"podName": "a", "recording": "Past", "storageLocation": "/tmp/profiles"},
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "recording Past",
        ),
        (
            {"podName": "a", "recording": "Past", "storageLocation": "gs://profiles/ml", "delivery": "Workload"},
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "recording Past",
        ),
        ({"target": {}}, RefusalReason.INVALID, "runRef, workloadRef and selector"),
        ({"target": WORKLOAD | {"selector": {"matchLabels": {"a": "b"}}}}, RefusalReason.INVALID, "exactly one"),
        ({"target": {"selector": {}}}, RefusalReason.INVALID, "empty"),
        ({"target": {"selector": {"matchLabels": {"a,!b": "c"}}}}, RefusalReason.INVALID, "not a valid label key"),
        ({"target": {"selector": {"matchLabels": {"a" * 300: "c"}}}}, RefusalReason.INVALID, "not a valid label key"),
        (
            {"target": {"selector": {"matchExpressions": [{"key": f"p/{'a' * 64}", "operator": "Exists"}]}}},
            RefusalReason.INVALID,
            "not a valid label key",
        ),
        (
            {"target": {"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}},
            RefusalReason.INVALID,
            "'a' with In: In and NotIn need values",
        ),
        (
            {"target": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}},
            RefusalReason.INVALID,
            "DoesNotExist must not have values",
        ),
        ({"target": WORKLOAD | {"ranks": "7-4"}}, RefusalReason.INVALID, "target.ranks '7-4'"),
        ({"target": {"workloadRef": {"kind": "CronJob", "name": "n"}}}, RefusalReason.KIND_NOT_SUPPORTED, "CronJob"),
        (
            {"target": {"workloadRef": {"apiVersion": "x.io/v1", "kind": "Job", "name": "n"}}},
            RefusalReason.KIND_NOT_SUPPORTED,
            "x.io/v1 Job",
        ),
        ({"podName": "a", "podNamespace": "other"}, RefusalReason.NAMESPACE_NOT_ALLOWED, "other"),
        ({"podName": "a", "durationSeconds": 61}, RefusalReason.DURATION_TOO_LONG, "61 s"),
        ({"podName": "a", "durationMilliseconds": 60_001}, RefusalReason.DURATION_TOO_LONG, "60.001 s"),
        ({"podName": "a", "durationSeconds": 2**31 - 1}, RefusalReason.DURATION_TOO_LONG, "60 s"),
        ({"podName": "a", "deadlineSeconds": 7201}, RefusalReason.DEADLINE_TOO_LONG, "7201: longer than .* of 7200 s"),
        ({"podName": "a", "waitForPodsSeconds": 3601}, RefusalReason.WAIT_TOO_LONG, "3601: longer than .* of 3600 s"),
        ({"podName": "a", "capturePort": 22}, RefusalReason.PORT_NOT_ALLOWED, "9012,9999-10014"),
        ({"podName": "a", "storageLocation": "gs://profiles/ml/../x"}, RefusalReason.STORAGE_INVALID, r"\.\."),
        ({"podName": "a", "storageLocation": "tmp/x"}, RefusalReason.STORAGE_INVALID, "absolute"),
        (
            {"podName": "a", "storageLocation": "gs://profiles/other"},
            RefusalReason.STORAGE_NOT_ALLOWED,
            "gs://profiles/ml",
        ),
        ({"podName": "a", "storageLocation": "/etc"}, RefusalReason.STORAGE_NOT_ALLOWED, "/tmp/profiles"),
        (
            {"podName": "a", "storageLocation": "/tmp/profiles", "delivery": "Operator"},
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "in the pod",
        ),
        (
            {"podName": "a", "storageLocation": "volume:///x", "delivery": "Workload"},
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "operator's volume",
        ),
    ],
)
def test_each_fault_is_refused_with_its_own_reason(trigger: dict[str, Any], reason: RefusalReason, named: str) -> None:
    refused = check_with(**trigger)
    assert isinstance(refused, CaptureRefusal)
    assert refused.reason is reason
    assert not refused.transient
    with pytest.raises(AssertionError, match=named):
        raise AssertionError(refused.message)


def test_without_default_storage_a_location_is_required() -> None:
    policy = Policy(default_storage=None)
    refused = check_with(policy, podName="a")
    assert isinstance(refused, CaptureRefusal)
    assert refused.reason is RefusalReason.STORAGE_MISSING
    assert accepted(policy, podName="a", storageLocation="volume:///ml").explicit


@pytest.mark.parametrize(
    ("trigger", "value"),
    [
        ({"podNamespace": "other"}, "add it to policy.crossNamespaces"),
        ({"deadlineSeconds": 7201}, "raise policy.maxDeadlineSeconds"),
        ({"waitForPodsSeconds": 3601}, "raise policy.maxWaitForPodsSeconds"),
        ({"durationSeconds": 61}, "raise policy.maxDurationSeconds"),
        ({"capturePort": 22}, "add it to policy.allowedPorts"),
        ({"storageLocation": "/etc"}, "add it to policy.allowedStorage"),
        ({"storageLocation": "gs://other/x"}, "add it to policy.allowedStorage, or to set policy.strictTenancy=false"),
    ],
    ids=str,
)
def test_a_refusal_names_the_chart_value_to_change(trigger: dict[str, Any], value: str) -> None:
    refused = check_with(podName="a", **trigger)
    assert isinstance(refused, CaptureRefusal)
    assert f"ask the administrator to {value}" in refused.message


EXAMPLES = sorted(path for path in (REPOSITORY / "examples").rglob("*.yaml") if CONNECTIONS.kind in path.read_text())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_installation_without_values_accepts_the_examples(example: Path) -> None:
    document = yaml.safe_load(example.read_text())
    metadata = {"namespace": "ml", "uid": "u"} | document["metadata"]
    request = check(MLDiagnosticsConnection.model_validate(document | {"metadata": metadata}), Policy())
    refusals = {"in-the-pod": RefusalReason.STORAGE_NOT_ALLOWED, "run": RefusalReason.RUN_NOT_FOUND}
    if example.stem in refusals:
        assert isinstance(request, CaptureRefusal)
        assert request.reason is refusals[example.stem]
        return
    assert isinstance(request, CaptureRequest), request


@pytest.mark.parametrize("duration_s", [2, 120, 3600])
def test_an_installation_without_values_accepts_the_peers_bucket_and_durations(duration_s: int) -> None:
    request = accepted(Policy(), podName="a", durationSeconds=duration_s, storageLocation="gs://anything/profiles")
    assert (request.duration_ms, str(request.root)) == (1000 * duration_s, "gs://anything/profiles")


def test_the_peers_six_fields_are_accepted() -> None:
    request = check(a.parsed(a.peer_connection("b, a,a , c,")), POLICY)
    assert isinstance(request, CaptureRequest)
    assert request.pods == ("b", "a", "c")
    assert (request.namespace, request.duration_ms, str(request.root)) == ("ml", 2000, "volume:///captures")


@pytest.mark.parametrize(
    ("trigger", "duration_ms"),
    [({}, 2000), ({"durationSeconds": 3}, 3000), ({"durationMilliseconds": 250}, 250)],
)
def test_a_duration_is_read_in_milliseconds_with_a_default(trigger: dict[str, Any], duration_ms: int) -> None:
    assert accepted(podName="a", **trigger).duration_ms == duration_ms


@pytest.mark.parametrize(
    ("location", "requested", "delivery"),
    [
        (None, None, Delivery.AUTO),
        ("gs://profiles/ml", None, Delivery.AUTO),
        ("gs://profiles/ml", "Workload", Delivery.WORKLOAD),
        ("gs://profiles/ml", "Operator", Delivery.OPERATOR),
        ("volume:///x", None, Delivery.OPERATOR),
        ("volume:///x", "Auto", Delivery.OPERATOR),
        ("/tmp/profiles", None, Delivery.WORKLOAD),
        ("pod:///tmp/profiles/x", "Workload", Delivery.WORKLOAD),
    ],
)
def test_delivery_follows_from_the_location(location: str | None, requested: str | None, delivery: Delivery) -> None:
    trigger = {"storageLocation": location} if location else {}
    trigger |= {"delivery": requested} if requested else {}
    assert accepted(podName="a", **trigger).delivery is delivery


@pytest.mark.parametrize(
    ("trigger", "refused"),
    [
        ({"storageLocation": "gs://profiles/ml"}, False),
        ({"storageLocation": "gs://profiles/ml", "delivery": "Workload"}, True),
        ({"storageLocation": "/tmp/profiles"}, True),
    ],
)
def test_a_location_that_pods_write_to_must_be_allowed_in_their_namespace(
    trigger: dict[str, Any], *, refused: bool
) -> None:
    result = check_with(podName="a", podNamespace="shared", **trigger)
    assert isinstance(result, CaptureRefusal) is refused
    if isinstance(result, CaptureRequest):
        assert result.delivery is Delivery.OPERATOR


def test_the_targets_become_a_workload_or_a_selector() -> None:
    workload = accepted(target=WORKLOAD)
    assert workload.workload is not None
    assert (workload.workload.kind, workload.workload_name, workload.pods, workload.selector) == (
        "JobSet",
        "trainer",
        (),
        None,
    )
    selector = accepted(target={"selector": {"matchLabels": {"app": "x"}, "matchExpressions": None}})
    assert (selector.selector, selector.pods, selector.workload) == ("app=x", (), None)
    assert "app=x" in selector.description
    assert workload.description == "JobSet ml/trainer"
