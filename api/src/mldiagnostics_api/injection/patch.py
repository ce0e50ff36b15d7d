"""A decision as JSON patch (RFC 6902) with only `add` operations."""

from collections.abc import Iterator, Mapping
from typing import Any

from mldiagnostics_api.injection.model import ContainerAddition, Injection, NotInjected

Operation = dict[str, Any]


def patch(pod: Mapping[str, Any], decision: Injection | NotInjected) -> list[Operation]:
    """Return the patch for the pod of the decision; empty if the pod lacks nothing."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = _members(metadata, "annotations", decision.annotations)
    if isinstance(decision, NotInjected):
        return list(annotations)
    return [
        *_members(metadata, "labels", decision.labels),
        *annotations,
        *_elements(
            "/spec/volumes", [decision.volume] if decision.volume else [], exists=spec.get("volumes") is not None
        ),
        *(operation for addition in decision.containers for operation in _container(addition)),
    ]


def _container(addition: ContainerAddition) -> Iterator[Operation]:
    yield from _elements(f"{addition.path}/env", addition.variables, exists=addition.has_env)
    mounts = [addition.mount] if addition.mount else []
    yield from _elements(f"{addition.path}/volumeMounts", mounts, exists=addition.has_mounts)


def _members(metadata: Mapping[str, Any], key: str, added: Mapping[str, str]) -> Iterator[Operation]:
    path = f"/metadata/{key}"
    if added and metadata.get(key) is None:
        yield {"op": "add", "path": path, "value": dict(added)}
        return
    for name, value in added.items():
        yield {"op": "add", "path": f"{path}/{_escaped(name)}", "value": value}


def _elements(path: str, added: Any, *, exists: bool) -> Iterator[Operation]:
    if added and not exists:
        yield {"op": "add", "path": path, "value": list(added)}
        return
    for element in added:
        yield {"op": "add", "path": f"{path}/-", "value": element}


def _escaped(name: str) -> str:
    """Escape a key for a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")
