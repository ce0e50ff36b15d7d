"""What the operator finds out about its cluster at start: its name, and who owns the custom resource there."""

import logging
from collections.abc import Mapping
from typing import Final

import aiohttp
from mldiagnostics import identity
from mldiagnostics_api import names

from mldiagnostics_operator.cluster import Cluster, NotFound, path_to

_log: Final = logging.getLogger(__name__)

# GKE's system namespace of its managed ML Diagnostics add-on, and the label with which GKE marks what it manages.
ADDON_NAMESPACE: Final = "gke-managed-mldiagnostics"
ADDON_LABEL: Final = "addonmanager.kubernetes.io/mode"

_DEFINITION: Final = f"{names.CONNECTION_PLURAL}.{names.GROUP}"
_METADATA_TIMEOUT: Final = aiohttp.ClientTimeout(total=2.0)
_METADATA_PATHS: Final = (
    "project/project-id",
    "instance/attributes/cluster-location",
    "instance/attributes/cluster-name",
)


async def cluster_name(configured: str, environ: Mapping[str, str], cluster: Cluster) -> str:
    """Find the name that is part of every run id: the configured one, GKE's, or one made of kube-system's uid.

    Raises ClusterError if it comes to the last and the API server does not say.
    """
    if configured:
        return configured
    if name := await _gke_name(environ.get("GCE_METADATA_HOST", "metadata.google.internal")):
        return name
    namespace = await cluster.get(path_to("", "v1", "namespaces", name="kube-system"))
    return identity.fallback_cluster_name(namespace["metadata"]["uid"])


async def _gke_name(host: str) -> str | None:
    """Ask GKE's metadata server (cloud.google.com/compute/docs/metadata); None where there is none."""
    headers = {"Metadata-Flavor": "Google"}
    try:
        async with aiohttp.ClientSession(headers=headers, timeout=_METADATA_TIMEOUT, raise_for_status=True) as session:
            parts = []
            for path in _METADATA_PATHS:
                async with session.get(f"http://{host}/computeMetadata/v1/{path}") as answer:
                    parts.append((await answer.text()).strip())
    except (aiohttp.ClientError, OSError) as absent:
        _log.debug("No GKE metadata server at %s: %s", host, absent)
        return None
    project, location, name = parts
    return f"projects/{project}/locations/{location}/clusters/{name}"


async def missing(cluster: Cluster) -> str | None:
    """Say what lacks of our custom resource, None if it is served; discovery may lag behind the definition."""
    try:
        served = await cluster.get(f"/apis/{names.API_VERSION}")
        groups = await cluster.get("/apis")
    except NotFound:
        served, groups = {}, {}
    kinds = {resource["name"] for resource in served.get("resources", [])}
    if names.CONNECTION_PLURAL in kinds and names.GROUP in {group["name"] for group in groups["groups"]}:
        return None
    return f"The custom resource {_DEFINITION} ({names.VERSION}) is not installed: apply crds/, or the chart's CRDs"


async def managed_elsewhere(cluster: Cluster) -> str | None:
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
