"""The way to the control plane: a volume with a token of the pod's service account, and where it can be mounted."""

import posixpath
from typing import Any, Final

from mldiagnostics_api.injection.shape import ContainerShape, PodShape
from mldiagnostics_api.names import CONTROL_PLANE_CA_ANNOTATION
from mldiagnostics_api.variables import CONTROL_PLANE_DIRECTORY, InjectionSettings, control_plane_variables

VOLUME: Final = "mldiagnostics"
AUDIENCE: Final = "mldiagnostics"
"""Whom the token is for: it opens nothing else."""

MOUNT: Final[dict[str, Any]] = {"name": VOLUME, "mountPath": CONTROL_PLANE_DIRECTORY, "readOnly": True}

_TOKEN: Final = {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}}
_CA_FIELD: Final = {"fieldPath": f"metadata.annotations['{CONTROL_PLANE_CA_ANNOTATION}']"}
_CA: Final = {"downwardAPI": {"items": [{"path": "ca.crt", "fieldRef": _CA_FIELD}]}}


def volume(settings: InjectionSettings) -> dict[str, Any]:
    """Describe the volume; the certificates in it come from the pod's annotation."""
    return {"name": VOLUME, "projected": {"sources": [_TOKEN, _CA] if settings.control_plane_ca else [_TOKEN]}}


def reachable(pod: PodShape, settings: InjectionSettings) -> bool:
    """Tell whether the pod can be given the way there.

    One is configured, the pod has a service account (the API server denies pods with a token of none), and the names of
    volume and annotation are free, or ours already.
    """
    if not settings.control_plane_url or not pod.service_account:
        return False
    there = (pod.volumes or {}).get(VOLUME)
    certificates = (pod.annotations or {}).get(CONTROL_PLANE_CA_ANNOTATION, settings.control_plane_ca)
    return (there is None or _is_ours(there)) and certificates == settings.control_plane_ca


def takes(container: ContainerShape, settings: InjectionSettings) -> bool:
    """Tell whether a container gets the way there, which is all of it or nothing.

    It does not if the user sets one of the variables, or has mounted something in the directory or around it: there,
    the container would not start if what is mounted cannot be written to.
    """
    mounted = any(_is_in_the_way(path) for path in container.mounts or {})
    named = {variable["name"] for variable in control_plane_variables(settings)}
    return not mounted and named.isdisjoint(container.variables or ())


def _is_in_the_way(path: str) -> bool:
    """Tell whether a mount is in the directory, at it, or around it; `/var/run` is a link to `/run` as a rule."""
    place = posixpath.normpath(f"/{path.lstrip('/')}") + "/"
    place = f"/var{place}" if place.startswith("/run/") else place
    ours = f"{CONTROL_PLANE_DIRECTORY}/"
    return place == "//" or place.startswith(ours) or ours.startswith(place)


def _is_ours(there: Any) -> bool:
    projected = there.get("projected")
    sources = projected.get("sources") if isinstance(projected, dict) else None
    tokens = [source.get("serviceAccountToken") for source in sources or () if isinstance(source, dict)]
    return any(isinstance(token, dict) and token.get("audience") == AUDIENCE for token in tokens)
