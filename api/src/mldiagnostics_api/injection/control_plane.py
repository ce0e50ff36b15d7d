"""Access to the control plane: a volume with a token of the pod's service account."""

import posixpath
from typing import Any, Final

from mldiagnostics_api.injection.shape import ContainerShape, PodShape
from mldiagnostics_api.names import CONTROL_PLANE_CA_ANNOTATION
from mldiagnostics_api.workloads.variables import CONTROL_PLANE_DIRECTORY, InjectionSettings, control_plane_variables

VOLUME: Final = "mldiagnostics"
AUDIENCE: Final = "mldiagnostics"
"""Audience of the token; it is not valid elsewhere."""

MOUNT: Final[dict[str, Any]] = {"name": VOLUME, "mountPath": CONTROL_PLANE_DIRECTORY, "readOnly": True}

_TOKEN: Final = {"serviceAccountToken": {"audience": AUDIENCE, "expirationSeconds": 3600, "path": "token"}}
_CA_FIELD: Final = {"fieldPath": f"metadata.annotations['{CONTROL_PLANE_CA_ANNOTATION}']"}
_CA: Final = {"downwardAPI": {"items": [{"path": "ca.crt", "fieldRef": _CA_FIELD}]}}


def volume(settings: InjectionSettings) -> dict[str, Any]:
    """Return the volume; its certificates come from the pod's annotation."""
    return {"name": VOLUME, "projected": {"sources": [_TOKEN, _CA] if settings.control_plane_ca else [_TOKEN]}}


def is_available(pod: PodShape, settings: InjectionSettings) -> bool:
    """Return whether the pod can get access to the control plane.

    A control plane is configured, the pod has a service account (the API server denies a token without one), and the
    names of volume and annotation are free or already ours.
    """
    if not settings.control_plane_url or not pod.service_account:
        return False
    present = (pod.volumes or {}).get(VOLUME)
    certificates = (pod.annotations or {}).get(CONTROL_PLANE_CA_ANNOTATION, settings.control_plane_ca)
    return (present is None or _is_ours(present)) and certificates == settings.control_plane_ca


def can_mount(container: ContainerShape, settings: InjectionSettings) -> bool:
    """Return whether a container gets access to the control plane.

    It does not if the user sets one of the variables, or mounts a volume at, in or around the directory: if that volume
    is read-only, the container would not start.
    """
    mounted = any(_overlaps(path) for path in container.mounts or {})
    named = {variable["name"] for variable in control_plane_variables(settings)}
    return not mounted and named.isdisjoint(container.variables or ())


def _overlaps(path: str) -> bool:
    """Return whether a mount is at, in or around the directory."""
    mount = posixpath.normpath(f"/{path.lstrip('/')}") + "/"
    mount = f"/var{mount}" if mount.startswith("/run/") else mount  # `/var/run` is usually a link to `/run`
    ours = f"{CONTROL_PLANE_DIRECTORY}/"
    return mount == "//" or mount.startswith(ours) or ours.startswith(mount)


def _is_ours(present: Any) -> bool:
    projected = present.get("projected")
    sources = projected.get("sources") if isinstance(projected, dict) else None
    tokens = [source.get("serviceAccountToken") for source in sources or () if isinstance(source, dict)]
    return any(isinstance(token, dict) and token.get("audience") == AUDIENCE for token in tokens)
