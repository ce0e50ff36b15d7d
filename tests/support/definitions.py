"""Custom resources on an API server: the product's, small objects of it, and those of other products."""

import asyncio
from contextlib import suppress
from typing import Any

from mldiagnostics_api.definition import definition_of
from mldiagnostics_api.resources import CONNECTIONS, Resource
from mldiagnostics_kube.apiserver import Conflict, path_to
from mldiagnostics_kube.client import ApiClient
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


def permissive(api_version: str, kind: str) -> dict[str, Any]:
    """Return the definition of a kind that keeps unknown fields."""
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
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }
