"""What is added to a pod, container by container, within the bound for all of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mldiagnostics_api.injection import control_plane
from mldiagnostics_api.injection.model import ContainerAddition
from mldiagnostics_api.injection.options import InjectionOptions
from mldiagnostics_api.injection.shape import ContainerShape, PodShape
from mldiagnostics_api.names import CONTROL_PLANE_CA_ANNOTATION
from mldiagnostics_api.variables import (
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
    """The additions are over their bound even without labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodContents:
    """What the containers of a pod get, and what that takes besides."""

    containers: tuple[ContainerAddition, ...]
    volume: Mapping[str, Any] | None
    annotations: Mapping[str, str]
    labels_dropped: bool


def contents(
    pod: PodShape,
    chosen: tuple[ContainerShape, ...],
    identity: InjectedIdentity,
    settings: InjectionSettings,
    wishes: InjectionOptions,
    *,
    besides: object,
) -> PodContents:
    """Gather what the chosen containers lack; `besides` is what the pod gets anyway.

    Labels of the workload are left out when all of it is over the bound. Raises TooLarge.
    """
    reachable = control_plane.reachable(pod, settings)
    for labels in (True, False):
        common = variables(
            identity,
            settings,
            pod_labels=pod.labels or {},
            sinks=wishes.sinks,
            peer_url=wishes.peer_url,
            labels=labels,
        )
        size = _size(common, settings, len(chosen), reachable=reachable, besides=besides)
        if size <= MAX_BYTES:
            additions = tuple(
                _addition(container, common, settings, wishes.port, reachable=reachable) for container in chosen
            )
            return _contents(pod, additions, settings, labels_dropped=not labels)
    raise PatchTooLarge(f"{len(chosen)} containers get more than {MAX_BYTES} bytes even without the workload's labels")


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
    reachable: bool,
) -> ContainerAddition:
    """Leave out what the container has: the user's value wins, wherever he takes it from."""
    mount = reachable and control_plane.takes(container, settings)
    told = (
        *common,
        profiler_port(port or container.profiler_port or settings.profiler_port),
        *(control_plane_variables(settings) if mount else ()),
    )
    present = container.variables or ()
    return ContainerAddition(
        path=container.path,
        variables=tuple(variable for variable in told if variable["name"] not in present),
        mount=control_plane.MOUNT if mount else None,
        has_env=container.variables is not None,
        has_mounts=container.mounts is not None,
    )


def _size(
    common: tuple[Variable, ...], settings: InjectionSettings, containers: int, *, reachable: bool, besides: object
) -> int:
    """Count what `containers` get as if they had none of it, so that a second look at the pod finds the same."""
    each: list[object] = [*common, profiler_port(65535)]
    once: list[object] = [besides]
    if reachable:
        each += [*control_plane_variables(settings), control_plane.MOUNT]
        once += [control_plane.volume(settings), CONTROL_PLANE_CA_ANNOTATION, settings.control_plane_ca]
    return containers * (_bytes(each) + _KEYS) + _bytes(once) + _KEYS_OF_POD


def _bytes(value: object) -> int:
    return len(_ENCODER.encode(value))
