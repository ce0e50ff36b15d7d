from __future__ import annotations

import json

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy

DOCUMENT = {
    "defaultStorage": "gs://profiles/runs",
    "allowedStorage": {"*": ["gs://profiles/shared"], "ml": ["gs://profiles/ml", "/tmp/profiles"], "open": ["gs://"]},
    "strictTenancy": True,
    "allowedPorts": "9012,9999-10014",
    "crossNamespaces": ["shared"],
    "hostNetwork": True,
    "maxDurationSeconds": 10,
    "maxDeadlineSeconds": 20,
    "maxWaitForPodsSeconds": 30,
    "capturesPerNamespace": 2,
    "capturesTotal": 5,
    "waitingPerNamespace": 3,
    "maxTraceBytes": 1024,
    "ttlSecondsAfterFinished": None,
}


def test_a_whole_document_is_parsed() -> None:
    policy = Policy.parse(json.dumps(DOCUMENT))
    assert str(policy.default_storage) == "gs://profiles/runs"
    assert 9012 in policy.allowed_ports
    assert 9998 not in policy.allowed_ports
    assert policy.host_network
    assert policy.max_duration_ms == 10_000
    assert (policy.captures_per_namespace, policy.captures_total, policy.max_trace_bytes) == (2, 5, 1024)
    assert policy.waiting_per_namespace == 3
    assert (policy.max_deadline_s, policy.max_wait_s) == (20, 30)
    assert policy.ttl_s is None


def test_an_empty_document_is_the_default_policy() -> None:
    assert Policy.parse("{}") == Policy()


@pytest.mark.parametrize("ports", ["9999,9012", ["9999", 9012], ["9012", "9999-9999"]])
def test_ports_may_be_written_as_text_or_list(ports: object) -> None:
    assert Policy.parse(json.dumps({"allowedPorts": ports})).allowed_ports.spans == ((9012, 9012), (9999, 9999))


def test_every_fault_of_a_document_is_named() -> None:
    faulty = {
        "defaultStorage": "ftp://x",
        "allowedStorage": ["gs://"],
        "allowedPorts": "70000",
        "maxDurationSeconds": 0,
        "capturesTotal": True,
        "hostNetwork": "yes",
        "strictTenancy": "true",
        "crossNamespaces": "ml",
        "surprise": 1,
    }
    with pytest.raises(ValueError, match="surprise: unknown; use one of") as caught:
        Policy.parse(json.dumps(faulty))
    assert all(f"{key}: " in str(caught.value) for key in faulty)


@pytest.mark.parametrize("document", ["", "[]", "{", "null"])
def test_text_that_is_not_a_document_is_rejected(document: str) -> None:
    with pytest.raises(ValueError, match=r"not (a )?JSON"):
        Policy.parse(document)


@pytest.mark.parametrize(
    ("location", "namespace", "allowed"),
    [
        ("gs://profiles/shared/x", "any", True),
        ("gs://profiles/shared", "ml", True),
        ("gs://profiles/ml/x", "ml", True),
        ("gs://profiles/ml/x", "other", False),
        ("gs://profiles/mlops", "ml", False),
        ("/tmp/profiles/a", "ml", True),
        ("/tmp", "ml", False),
        ("/tmp/profiles", "other", False),
        ("gs://elsewhere/x", "open", True),
        ("volume:///x", "open", False),
    ],
)
def test_storage_is_allowed_by_namespace(location: str, namespace: str, allowed: bool) -> None:
    policy = Policy.parse(json.dumps(DOCUMENT))
    assert policy.may_store(Location.parse(location), namespace) is allowed


@pytest.mark.parametrize(
    ("location", "allowed"),
    [("gs://any/x", True), ("s3://any/x", True), ("volume:///x", False), ("/tmp/profiles/x", True), ("/etc", False)],
)
def test_every_bucket_is_allowed_beside_the_list_unless_tenancy_is_strict(location: str, *, allowed: bool) -> None:
    document = {"allowedStorage": {"*": [], "ml": ["/tmp/profiles", "gs://of-ml"]}}
    policy = Policy.parse(json.dumps(document))
    assert policy.may_store(Location.parse(location), "ml") is allowed
    assert list(map(str, policy.prefixes("other"))) == ["gs://", "s3://", "az://", "abfss://"]
    strict = Policy.parse(json.dumps(document | {"strictTenancy": True}))
    assert not strict.may_store(Location.parse("gs://any/x"), "ml")
    assert strict.may_store(Location.parse("gs://of-ml/x"), "ml")
    assert strict.prefixes("other") == ()


@pytest.mark.parametrize(
    ("location", "allowed"),
    [
        ("volume:///ml", True),
        ("volume:///ml/x", True),
        ("volume:///", False),
        ("volume:///other", False),
        ("volume:///mlops", False),
        ("gs://any/ml", True),
    ],
)
def test_by_default_a_namespace_names_its_own_directory_of_the_volume(location: str, allowed: bool) -> None:
    assert Policy().may_store(Location.parse(location), "ml") is allowed


def test_other_namespaces_are_closed_unless_listed() -> None:
    assert Policy().may_capture(object_namespace="ml", pod_namespace="ml")
    assert not Policy().may_capture(object_namespace="ml", pod_namespace="other")
    listed = Policy.parse(json.dumps(DOCUMENT))
    assert listed.may_capture(object_namespace="ml", pod_namespace="shared")
    assert not listed.may_capture(object_namespace="shared", pod_namespace="ml")
    assert Policy(cross_namespaces=frozenset({"*"})).may_capture(object_namespace="a", pod_namespace="b")
