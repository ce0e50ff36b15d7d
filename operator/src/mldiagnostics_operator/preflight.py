"""What the operator finds out about its cluster at start: what lacks of its custom resource, and who owns it."""

from typing import Final

from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_kube.apiserver import NotFound, path_to
from mldiagnostics_kube.client import ApiClient

# GKE's system namespace of its managed ML Diagnostics add-on, and the label with which GKE marks what it manages.
ADDON_NAMESPACE: Final = "gke-managed-mldiagnostics"
ADDON_LABEL: Final = "addonmanager.kubernetes.io/mode"

_DEFINITION: Final = CONNECTIONS.definition_name


async def missing(cluster: ApiClient) -> str | None:
    """Say what lacks of our custom resource, None if it is served; discovery may lag behind the definition."""
    try:
        served = await cluster.get(f"/apis/{CONNECTIONS.api_version}")
        groups = await cluster.get("/apis")
    except NotFound:
        served, groups = {}, {}
    kinds = {resource["name"] for resource in served.get("resources", [])}
    if CONNECTIONS.plural in kinds and CONNECTIONS.group in {group["name"] for group in groups["groups"]}:
        return None
    return (
        f"The custom resource {_DEFINITION} ({CONNECTIONS.version}) is not installed: apply crds/, or the chart's CRDs"
    )


async def managed_elsewhere(cluster: ApiClient) -> str | None:
    """Say what shows that GKE's managed add-on reconciles the same objects; None if nothing does.

    The add-on's operator is not public, so two marks of GKE count, either of them: the label of its add-on manager on
    the definition of the resource, and its system namespace, unless that is being deleted.
    """
    definitions = path_to("apiextensions.k8s.io", "v1", "customresourcedefinitions", name=_DEFINITION)
    definition = await cluster.get(definitions)
    if ADDON_LABEL in definition["metadata"].get("labels", {}):
        return f"the definition {_DEFINITION} carries the label {ADDON_LABEL}"
    try:
        namespace = await cluster.get(path_to("", "v1", "namespaces", name=ADDON_NAMESPACE))
    except NotFound:
        return None
    return None if "deletionTimestamp" in namespace["metadata"] else f"the namespace {ADDON_NAMESPACE} exists"
