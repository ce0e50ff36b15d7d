"""Which pods are told the same: what of a pod decides, as a value to remember a decision by."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.injection.control_plane import VOLUME
from mldiagnostics_api.injection.shape import ContainerShape, MalformedPod, PodShape
from mldiagnostics_api.names import GROUP, OPT_IN_LABEL, RUN_LABEL
from mldiagnostics_api.owners import ObjectReference
from mldiagnostics_api.workloads import WORKLOADS

_LABELS: Final = (OPT_IN_LABEL, RUN_LABEL, *sorted({kind.places.jobs for kind in WORKLOADS if kind.places.jobs}))
_OURS: Final = f"{GROUP}/"
_MANY_ANNOTATIONS: Final = 64 * 1024
_MANY_NAMES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class DecisionKey:
    """Pods of one controller that are alike in `what` get one patch, as long as namespace and owners stay the same."""

    controller: ObjectReference
    what: Hashable


def likeness_of(pod: object, namespace: str) -> DecisionKey | None:
    """Read the likeness of any JSON that is said to be a pod; never raises.

    None for those that are each for themselves: no pods at all, pods that nothing controls (their name and the moment
    count), pods that stand for static ones, pods whose annotations leave little room, and pods that say too much to be
    remembered.
    """
    try:
        shape = PodShape.of(pod, namespace)
    except MalformedPod:
        return None
    if shape.controller is None or shape.mirror or _characters(shape.annotations) > _MANY_ANNOTATIONS:
        return None
    volumes = shape.volumes
    ours = repr(volumes[VOLUME]) if volumes and VOLUME in volumes else ""
    if len(ours) + len(shape.service_account) + sum(map(_names, shape.containers)) > _MANY_NAMES:
        return None
    what = (
        _chosen(shape.labels, [key for key in _LABELS if key in (shape.labels or ())]),
        _chosen(shape.annotations, [key for key in shape.annotations or () if key.startswith(_OURS)]),
        shape.service_account,
        volumes is None or ours,
        tuple(_container(container) for container in shape.containers),
    )
    return DecisionKey(shape.controller, what)


def _chosen(texts: Mapping[str, str] | None, keys: list[str]) -> Hashable:
    """Take the texts that are read; None where there is not even a mapping to add to."""
    return None if texts is None else tuple((key, texts[key]) for key in keys)


def _characters(texts: Mapping[str, str] | None) -> int:
    return sum(map(len, texts)) + sum(map(len, texts.values())) if texts else 0


def _names(container: ContainerShape) -> int:
    """Count the characters of what a container names."""
    mounts = container.mounts or {}
    texts = (container.name, *(container.variables or ()), *mounts, *mounts.values())
    return sum(map(len, texts))


def _container(container: ContainerShape) -> Hashable:
    mounts = container.mounts
    return (
        container.path,
        container.name,
        container.usual,
        container.variables,
        None if mounts is None else tuple(mounts.items()),
        container.profiler_port,
    )
