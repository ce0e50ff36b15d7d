"""The cache key of a decision: the parts of a pod that the decision depends on."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.injection.control_plane import VOLUME
from mldiagnostics_api.injection.shape import ContainerShape, MalformedPod, PodShape
from mldiagnostics_api.names import GROUP, OPT_IN_LABEL, RUN_LABEL
from mldiagnostics_api.workloads.kinds import WORKLOADS
from mldiagnostics_api.workloads.owners import ObjectReference

_LABELS: Final = (
    OPT_IN_LABEL,
    RUN_LABEL,
    *sorted({kind.rank_labels.jobs for kind in WORKLOADS if kind.rank_labels.jobs}),
)
_OURS: Final = f"{GROUP}/"
_MANY_ANNOTATIONS: Final = 64 * 1024
_MANY_NAMES: Final = 16 * 1024
# Each costs about 64 bytes besides its characters; a container costs as much as eight.
_MANY_ENTRIES: Final = 1024
_ENTRIES_OF_CONTAINER: Final = 8


@dataclass(frozen=True, slots=True)
class DecisionKey:
    """Key of a decision; pods with the same key get the same patch.

    The key is valid as long as namespace and owners do not change.
    """

    controller: ObjectReference
    parts: Hashable


def decision_key(pod: object, namespace: str) -> DecisionKey | None:
    """Return the key for the pod of an admission request, any JSON; never raises.

    Returns:
        None if the decision must not be cached: the pod is malformed, has no controller (its name and the time count),
        is a mirror pod, has nearly full annotations, or would make a very large key.
    """
    try:
        shape = PodShape.of(pod, namespace)
    except MalformedPod:
        return None
    if shape.controller is None or shape.mirror or _characters(shape.annotations) > _MANY_ANNOTATIONS:
        return None
    volumes = shape.volumes
    try:
        ours = repr(volumes[VOLUME]) if volumes and VOLUME in volumes else ""
    except RecursionError:  # nested too deeply to be compared
        return None
    if sum(map(_entries, shape.containers)) > _MANY_ENTRIES:
        return None
    if len(ours) + len(shape.service_account) + sum(map(_names, shape.containers)) > _MANY_NAMES:
        return None
    parts = (
        _selected(shape.labels, [key for key in _LABELS if key in (shape.labels or ())]),
        _selected(shape.annotations, [key for key in shape.annotations or () if key.startswith(_OURS)]),
        shape.service_account,
        volumes is None or ours,
        tuple(_container(container) for container in shape.containers),
    )
    return DecisionKey(shape.controller, parts)


def _selected(texts: Mapping[str, str] | None, keys: list[str]) -> Hashable:
    """Return the texts of these keys; None if there is no mapping to add to."""
    return None if texts is None else tuple((key, texts[key]) for key in keys)


def _characters(texts: Mapping[str, str] | None) -> int:
    return sum(map(len, texts)) + sum(map(len, texts.values())) if texts else 0


def _names(container: ContainerShape) -> int:
    """Count the characters of a container's names."""
    mounts = container.mounts or {}
    texts = (container.name, *(container.variables or ()), *mounts, *mounts.values())
    return sum(map(len, texts))


def _entries(container: ContainerShape) -> int:
    return _ENTRIES_OF_CONTAINER + len(container.variables or ()) + len(container.mounts or ())


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
