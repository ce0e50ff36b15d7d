"""The additions to a pod's containers, within a bound on their total size."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mldiagnostics_api.injection import control_plane
from mldiagnostics_api.injection.model import ContainerAddition
from mldiagnostics_api.injection.options import InjectionOptions
from mldiagnostics_api.injection.shape import ContainerShape, PodShape
from mldiagnostics_api.names import CONTROL_PLANE_CA_ANNOTATION
from mldiagnostics_api.workloads.variables import (
    InjectedIdentity,
    InjectionSettings,
    Variable,
    control_plane_variables,
    profiler_port,
    variables,
)

MAX_BYTES: Final = 8 * 1024
"""Most that an injection may add to a pod, counted as JSON."""
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_KEYS: Final = len(',"env":,"volumeMounts":')
_KEYS_OF_POD: Final = len(',"labels":{},"annotations":{},"volumes":[]')


class PatchTooLarge(Exception):
    """The additions exceed their bound even without labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContents:
    """The additions to a pod's containers, with their volume and annotations."""

    containers: tuple[ContainerAddition, ...]
    volume: Mapping[str, Any] | None
    annotations: Mapping[str, str]
    labels_dropped: bool


def pod_contents(
    pod: PodShape,
    chosen: tuple[ContainerShape, ...],
    identity: InjectedIdentity,
    settings: InjectionSettings,
    options: InjectionOptions,
    *,
    other: object,
) -> PodContents:
    """Return the additions that the chosen containers lack.

    Labels of the workload are dropped if the additions would exceed the bound.

    Args:
        pod: The pod.
        chosen: Containers to inject.
        identity: The run.
        settings: Settings of the webhook.
        options: Options of the annotations.
        other: Other additions to the pod, which count towards the bound.

    Raises:
        PatchTooLarge: The additions exceed the bound even without labels.
    """
    control_plane_access = control_plane.is_available(pod, settings)
    for labels in (True, False):
        common = variables(
            identity,
            settings,
            pod_labels=pod.labels or {},
            sinks=options.sinks,
            peer_url=options.peer_url,
            labels=labels,
        )
        size = _size(common, settings, len(chosen), control_plane_access=control_plane_access, other=other)
        if size <= MAX_BYTES:
            additions = tuple(
                _addition(container, common, settings, options.port, control_plane_access=control_plane_access)
                for container in chosen
            )
            return _contents(pod, additions, settings, labels_dropped=not labels)
    raise PatchTooLarge(f"{len(chosen)} containers need more than {MAX_BYTES} bytes even without the workload's labels")


def _contents(
    pod: PodShape, additions: tuple[ContainerAddition, ...], settings: InjectionSettings, *, labels_dropped: bool
) -> PodContents:
    mounted = any(addition.mount for addition in additions)
    ca = settings.control_plane_ca if mounted and CONTROL_PLANE_CA_ANNOTATION not in (pod.annotations or {}) else ""
    return PodContents(
        containers=tuple(addition for addition in additions if addition.variables or addition.mount),
        volume=control_plane.volume(settings) if mounted and control_plane.VOLUME not in (pod.volumes or {}) else None,
        annotations={CONTROL_PLANE_CA_ANNOTATION: ca} if ca else {},
        labels_dropped=labels_dropped,
    )


def _addition(
    container: ContainerShape,
    common: tuple[Variable, ...],
    settings: InjectionSettings,
    port: int | None,
    *,
    control_plane_access: bool,
) -> ContainerAddition:
    """Return the variables that the container lacks: the user's own values win."""
    mount = control_plane_access and control_plane.can_mount(container, settings)
    candidates = (
        *common,
        profiler_port(port or container.profiler_port or settings.profiler_port),
        *(control_plane_variables(settings) if mount else ()),
    )
    present = container.variables or ()
    return ContainerAddition(
        path=container.path,
        variables=tuple(variable for variable in candidates if variable["name"] not in present),
        mount=control_plane.MOUNT if mount else None,
        has_env=container.variables is not None,
        has_mounts=container.mounts is not None,
    )


def _size(
    common: tuple[Variable, ...],
    settings: InjectionSettings,
    containers: int,
    *,
    control_plane_access: bool,
    other: object,
) -> int:
    """Count the additions as if no container had any, as in a first review."""
    each: list[object] = [*common, profiler_port(65535)]
    once: list[object] = [other]
    if control_plane_access:
        each += [*control_plane_variables(settings), control_plane.MOUNT]
        once += [control_plane.volume(settings), CONTROL_PLANE_CA_ANNOTATION, settings.control_plane_ca]
    return containers * (_bytes(each) + _KEYS) + _bytes(once) + _KEYS_OF_POD


def _bytes(value: object) -> int:
    return len(_ENCODER.encode(value))
