"""The name of the cluster, which is part of every run id."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias

import aiohttp
from mldiagnostics import identity

from mldiagnostics_kube.client.apiserver import path_to
from mldiagnostics_kube.process.settings import Setting

_log: Final = logging.getLogger(__name__)

_METADATA_TIMEOUT: Final = aiohttp.ClientTimeout(total=2.0)
_METADATA_PATHS: Final = (
    "project/project-id",
    "instance/attributes/cluster-location",
    "instance/attributes/cluster-name",
)

ConfiguredName: TypeAlias = Annotated[
    str,
    Setting(
        "MLDIAG_CLUSTER_NAME",
        "Name of the cluster, part of every run id. Empty: the name from GKE's metadata server, "
        "else `k8s-` and the first 8 hex digits of the uid of namespace `kube-system`.",
    ),
]


async def cluster_name(
    configured: str, environ: Mapping[str, str], get: Callable[[str], Awaitable[Mapping[str, Any]]]
) -> str:
    """Resolve the name of the cluster.

    Args:
        configured: Name from the settings; empty if unset.
        environ: Environment; `GCE_METADATA_HOST` names the metadata server.
        get: Reads an object by its path; its exceptions are passed on.

    Returns:
        `configured`, else the name from GKE's metadata server, else one made of the uid of namespace `kube-system`.
    """
    if configured:
        return configured
    if name := await _gke_name(environ.get("GCE_METADATA_HOST", "metadata.google.internal")):
        return name
    namespace = await get(path_to("", "v1", "namespaces", name="kube-system"))
    return identity.fallback_cluster_name(namespace["metadata"]["uid"])


async def _gke_name(host: str) -> str | None:
    """Read the name from GKE's metadata server; return None without such a server."""
    headers = {"Metadata-Flavor": "Google"}
    try:
        async with aiohttp.ClientSession(headers=headers, timeout=_METADATA_TIMEOUT, raise_for_status=True) as session:
            parts = []
            for path in _METADATA_PATHS:
                async with session.get(f"http://{host}/computeMetadata/v1/{path}") as response:
                    parts.append((await response.text()).strip())
    except (aiohttp.ClientError, OSError) as absent:
        _log.debug("No GKE metadata server at %(host)s: %(error)s", {"host": host, "error": absent})
        return None
    project, location, name = parts
    return f"projects/{project}/locations/{location}/clusters/{name}"
