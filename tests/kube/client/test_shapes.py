"""Shapes of objects: those of a real API server have them, others are named by the field that is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_api.resources import RUNS
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.client.shapes import problem_of, shape_of
from support.cluster.definitions import install
from support.cluster.hostile_documents import VALID, valid_document

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"a": "b"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "c", "image": "i", "env": [{"name": "X"}], "ports": [{"containerPort": 9999}]}],
    },
}
SELECTOR = {"matchLabels": {"a": "b"}}
CREATED: list[tuple[tuple[str, str, str], dict[str, Any]]] = [
    (("", "v1", "pods"), {"spec": TEMPLATE["spec"]}),
    (("", "v1", "configmaps"), {}),
    (("batch", "v1", "jobs"), {"spec": {"template": TEMPLATE}}),
    (("batch", "v1", "cronjobs"), {"spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}}),
    (
        ("apps", "v1", "deployments"),
        {
            "spec": {
                "selector": SELECTOR,
                "template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}},
            }
        },
    ),
    (
        ("networking.k8s.io", "v1", "networkpolicies"),
        {"spec": {"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}], "ports": [{"port": 1}]}]}},
    ),
    (("coordination.k8s.io", "v1", "leases"), {"spec": {"holderIdentity": "a/b"}}),
    (RUNS.gvr, {"spec": {"runId": "a"}}),
]


@pytest.mark.parametrize("resource", VALID)
def test_a_valid_object_has_its_shape(resource: str) -> None:
    path = f"/apis/g/v1/namespaces/ml/{resource}"
    (first, _) = valid_document("GET", path)["items"]
    assert problem_of(first, shape_of(path)) is None
    assert problem_of({"metadata": first["metadata"]}, shape_of(path, metadata_only=True)) is None


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, "it is not an object"),
        ({}, "metadata is missing"),
        ({"metadata": None}, "metadata is missing"),
        ({"metadata": {"name": 7}}, "metadata.name is not a text"),
        ({"metadata": {"name": "a", "labels": {"x": None}}}, "metadata.labels.x is not a text"),
        ({"metadata": {"name": "a", "ownerReferences": [{}]}}, "metadata.ownerReferences[0].apiVersion is missing"),
        (
            {"metadata": {"name": "a", "uid": "u", "creationTimestamp": "now"}},
            "metadata.creationTimestamp is not a time",
        ),
    ],
)
def test_the_field_that_is_wrong_is_named(document: Any, problem: str) -> None:
    assert problem_of(document, shape_of("/api/v1/namespaces/ml/pods/a")) == problem


def test_a_group_of_the_api_has_a_name() -> None:
    assert problem_of({"groups": [{}]}, shape_of("/apis")) == "groups[0].name is missing"


def test_null_means_the_same_as_nothing() -> None:
    document = valid_document("GET", "/api/v1/namespaces/ml/pods/a") | {"status": None}
    assert problem_of(document, shape_of("/api/v1/namespaces/ml/pods/a")) is None
    assert "status" not in document


@pytest.mark.apiserver
async def test_objects_of_a_real_server_pass(cluster: ApiClient, namespace: str) -> None:
    await install(cluster, RUNS)
    client = ApiClient.of(cluster.access, is_trusted=False)
    try:
        for gvr, fields in CREATED:
            made = await client.create(path_to(*gvr, namespace=namespace), _named(gvr, fields))
            read = await client.get(path_to(*gvr, namespace=namespace, name="a"), metadata_only=True)
            assert read["metadata"]["uid"] == made["metadata"]["uid"]
            for scope in (namespace, None):
                assert await client.items(path_to(*gvr, namespace=scope), lambda each: each["metadata"]["name"])
        assert await client.items(path_to("", "v1", "namespaces"), dict, metadata_only=True)
        for plural in ("endpointslices", "leases"):
            group = "discovery.k8s.io" if plural == "endpointslices" else "coordination.k8s.io"
            assert await client.items(path_to(group, "v1", plural), dict)
        assert (await client.get("/version"))["gitVersion"]
        assert "batch" in {each["name"] for each in (await client.get("/apis"))["groups"]}
        assert (await client.get("/apis/batch"))["versions"]
        for path, plural in (("/apis/batch/v1", "jobs"), ("/api/v1", "pods")):
            assert plural in {each["name"] for each in (await client.get(path))["resources"]}
        assert (await client.get(f"/openapi/v3/apis/{RUNS.group}/{RUNS.version}"))["components"]
    finally:
        await client.aclose()


def _named(gvr: tuple[str, str, str], fields: dict[str, Any]) -> dict[str, Any]:
    kind = {RUNS.gvr: {"apiVersion": RUNS.api_version, "kind": RUNS.kind}}.get(gvr, {})
    return {**kind, "metadata": {"name": "a"}, **fields}
