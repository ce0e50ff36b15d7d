"""The parts of an admitted pod that the decision needs, parsed from any JSON."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final, Self, TypeVar

from mldiagnostics_api.formats import quote
from mldiagnostics_api.names import PROFILER_PORT_PREFIX
from mldiagnostics_api.workloads.owners import ObjectReference

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"

# Limit of the names in cache keys; valid names are shorter.
_MAX_NAME: Final = 512

_T = TypeVar("_T")

_NAME_OF: Final = itemgetter("name")
_KINDS: Final[Mapping[type, str]] = {dict: "an object", list: "a list", str: "a string"}


class MalformedPod(ValueError):
    """The JSON is not a pod; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerShape:
    """A container: its path in the pod and its present variables and mounts."""

    path: str
    """JSON pointer to it in the pod."""
    name: str
    usual: bool
    """Whether it runs along with the pod: an app container or a native sidecar."""
    variables: frozenset[str] | None
    """Names of its variables; None without a list."""
    mounts: Mapping[str, str] | None
    """Name of the volume by mount path; None without a list."""
    profiler_port: int | None
    """The first port that is named as profiler port."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """A pod: the fields that decide, and its present volumes and containers."""

    name: str
    """Empty if the API server generates the name later."""
    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None
    controller: ObjectReference | None
    service_account: str
    """Usually set by the API server before it calls the webhook."""
    mirror: bool
    """Whether it is the mirror of a static pod."""
    containers: tuple[ContainerShape, ...]
    """The app containers first, then the init containers."""
    volumes: Mapping[str, Mapping[str, Any]] | None

    @classmethod
    def of(cls, pod: object, namespace: str) -> Self:
        """Parse a pod; raise MalformedPod for JSON that the API server would reject."""
        whole = _object(pod, "the pod")
        metadata, spec = _object(whole.get("metadata"), "metadata"), _object(whole.get("spec"), "spec")
        labels, annotations = _texts(metadata, "labels"), _texts(metadata, "annotations")
        containers, starters = (_list(spec, key) for key in ("containers", "initContainers"))
        return cls(
            name=_text(metadata, "name"),
            labels=labels,
            annotations=annotations,
            controller=_controller(metadata, namespace),
            service_account=_text(spec, "serviceAccountName"),
            mirror=MIRROR_ANNOTATION in (annotations or {}),
            containers=(
                *_containers(containers, "/spec/containers"),
                *_containers(starters, "/spec/initContainers", starts=True),
            ),
            volumes=_named(spec, "volumes"),
        )


def controller_of(pod: object, namespace: str) -> ObjectReference | None:
    """Return the controlling owner of a pod, any JSON, or None; never raises."""
    try:
        return _controller(_object(_object(pod, "the pod").get("metadata"), "metadata"), namespace)
    except MalformedPod:
        return None


def _containers(containers: Sequence[object] | None, path: str, *, starts: bool = False) -> Iterator[ContainerShape]:
    for index, item in enumerate(containers or ()):
        here = f"{path}/{index}"
        container = _object(item, here)
        mounts = _list(container, "volumeMounts")
        yield ContainerShape(
            path=here,
            name=_text(container, "name"),
            usual=not starts or container.get("restartPolicy") == "Always",
            variables=_names(container, "env"),
            mounts=None if mounts is None else dict(_mounts(mounts, here)),
            profiler_port=next(_profiler_ports(container), None),
        )


def _mounts(mounts: Sequence[object], where: str) -> Iterator[tuple[str, str]]:
    for item in mounts:
        mount = _object(item, f"{where}/volumeMounts")
        yield _text(mount, "mountPath").rstrip("/"), _text(mount, "name")


def _profiler_ports(container: Mapping[str, Any]) -> Iterator[int]:
    for item in _list(container, "ports") or ():
        port = _object(item, "ports")
        number = port.get("containerPort")
        if _text(port, "name").startswith(PROFILER_PORT_PREFIX) and isinstance(number, int):
            yield number


def _controller(metadata: Mapping[str, Any], namespace: str) -> ObjectReference | None:
    for item in _list(metadata, "ownerReferences") or ():
        owner = _object(item, "ownerReferences")
        if owner.get("controller") is True:
            values = [_text(owner, key) for key in ("apiVersion", "kind", "name", "uid")]
            if not all(0 < len(value) <= _MAX_NAME for value in values):
                raise MalformedPod(
                    f"owner reference {quote(owner)}: apiVersion, kind, name or uid is missing "
                    f"or has more than {_MAX_NAME} characters"
                )
            api_version, kind, name, uid = values
            return ObjectReference(api_version, kind, namespace, name, uid)
    return None


def _object(value: object, where: str) -> Mapping[str, Any]:
    mapping = _typed(value, dict, where)
    if mapping is None:
        raise MalformedPod(f"{where}: missing or null")
    return mapping


def _list(parent: Mapping[str, Any], key: str) -> Sequence[object] | None:
    return _typed(parent.get(key), list, key)


def _text(parent: Mapping[str, Any], key: str) -> str:
    return _typed(parent.get(key), str, key) or ""


def _texts(parent: Mapping[str, Any], key: str) -> Mapping[str, str] | None:
    """Return a mapping of strings; null values count as empty, as in the API server."""
    mapping = _typed(parent.get(key), dict, key)
    if mapping is None or all(isinstance(value, str) for value in mapping.values()):
        return mapping
    return {name: _text(mapping, name) for name in mapping}


def _named(parent: Mapping[str, Any], key: str) -> Mapping[str, Mapping[str, Any]] | None:
    """Return the objects of a list by name."""
    items = _list(parent, key)
    objects = None if items is None else [_object(item, key) for item in items]
    return None if objects is None else {_text(item, "name"): item for item in objects}


def _names(parent: Mapping[str, Any], key: str) -> frozenset[str] | None:
    """Return the names in a list of objects; the usual case has a fast path."""
    with suppress(KeyError, TypeError):  # not a list, or not only objects with names
        names = frozenset(map(_NAME_OF, parent[key]))
        if {*map(type, names)} == {str}:
            return names
    named = _named(parent, key)
    return None if named is None else frozenset(named)


def _typed(value: object, kind: type[_T], where: str) -> _T | None:
    if value is None or isinstance(value, kind):
        return value
    raise MalformedPod(f"{where}: {quote(value)} is not {_KINDS[kind]}")
