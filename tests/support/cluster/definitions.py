"""Custom resources on an API server: the product's, small objects of it, and those of other products."""

import asyncio
from contextlib import suppress
from typing import Any

from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.resources import CONNECTIONS, Resource
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import Conflict, path_to
from mldiagnostics_operator.preflight import missing_resource

DEFINITIONS = path_to("apiextensions.k8s.io", "v1", "customresourcedefinitions")


async def install(cluster: ApiClient, resource: Resource = CONNECTIONS) -> None:
    """Install a custom resource unless it is served, and wait until it is."""
    with suppress(Conflict):
        await cluster.create(DEFINITIONS, definition_of(resource))
    async with asyncio.timeout(30):
        while await missing_resource(cluster, [resource]):  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(0.05)


def connections(namespace: str) -> str:
    """Return the path of a namespace's captures."""
    return path_to(*CONNECTIONS.gvr, namespace=namespace)


def connection(name: str, **capture: Any) -> dict[str, Any]:
    """Return a capture, of the pod `p` by default."""
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {"name": name},
        "spec": {"triggerCapture": capture or {"podName": "p"}},
    }


def kueue_workload() -> dict[str, Any]:
    """Return the definition of Kueue's Workload, reduced to the fields that the product reads."""
    text = {"type": "string"}
    truth = {"type": "string", "enum": ["True", "False", "Unknown"]}
    time = {"type": "string", "format": "date-time"}
    fields = {"type": text, "status": truth, "reason": text, "message": text, "lastTransitionTime": time}
    condition = {"type": "object", "properties": fields, "required": [*fields]}
    checks = {"type": "object", "properties": {"name": text, "state": text, "message": text}}
    status = {
        "conditions": {"type": "array", "items": condition, "maxItems": 16},
        "admissionChecks": {"type": "array", "items": checks, "maxItems": 8},
    }
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    parts = {"spec": anything, "status": {"type": "object", "properties": status}}
    definition = permissive("kueue.x-k8s.io/v1beta2", "Workload")
    [version] = definition["spec"]["versions"]
    version |= {"subresources": {"status": {}}, "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}}}
    return definition


def permissive(api_version: str, kind: str) -> dict[str, Any]:
    """Return the definition of a kind with a status that keeps unknown fields."""
    group, _, version = api_version.rpartition("/")
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()},
            "versions": [
                {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
            ],
        },
    }
