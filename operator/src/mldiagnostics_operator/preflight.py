"""Checks of the cluster before a replica leads: resources and managed add-ons."""

from collections.abc import Iterable
from typing import Final

from mldiagnostics_api.resources import CONNECTIONS, Resource
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import NotFound, path_to

ADDON_NAMESPACE: Final = "gke-managed-mldiagnostics"
"""GKE's system namespace of its managed ML Diagnostics add-on."""
ADDON_LABEL: Final = "addonmanager.kubernetes.io/mode"
"""The label with which GKE's add-on manager marks the objects that it manages."""

_SHARED: Final = CONNECTIONS.definition_name
"""The definition that the managed add-on installs too."""


async def missing_resource(cluster: ApiClient, resources: Iterable[Resource]) -> str | None:
    """Return a message about the first resource that is not installed, or None.

    Discovery may lag behind the definition.
    """
    for resource in resources:
        if not await _is_served(cluster, resource):
            return (
                f"The custom resource {resource.definition_name} ({resource.version}) is not installed: "
                "apply crds/, or install the chart's CRDs"
            )
    return None


async def _is_served(cluster: ApiClient, resource: Resource) -> bool:
    try:
        served = await cluster.get(f"/apis/{resource.api_version}")
        groups = await cluster.get("/apis")
    except NotFound:
        return False
    plurals = {each["name"] for each in served.get("resources", [])}
    return resource.plural in plurals and resource.group in {group["name"] for group in groups["groups"]}


async def managed_addon(cluster: ApiClient) -> str | None:
    """Return how GKE's managed add-on shows itself in this cluster, or None.

    The add-on's operator is not public, so two marks of GKE count, either of them: the label of its add-on manager on
    the definition of the resource, and its system namespace, unless that is being deleted.
    """
    path = path_to("apiextensions.k8s.io", "v1", "customresourcedefinitions", name=_SHARED)
    definition = await cluster.get(path)
    if ADDON_LABEL in definition["metadata"].get("labels", {}):
        return f"the definition {_SHARED} carries the label {ADDON_LABEL}"
    try:
        namespace = await cluster.get(path_to("", "v1", "namespaces", name=ADDON_NAMESPACE))
    except NotFound:
        return None
    return None if "deletionTimestamp" in namespace["metadata"] else f"the namespace {ADDON_NAMESPACE} exists"
