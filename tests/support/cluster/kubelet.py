"""The environment of a container as the kubelet resolves it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Object = dict[str, Any]

_LABEL = re.compile(r"metadata\.labels\['(.+)'\]")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """Resolve `$(NAME)` and `$$` as Kubernetes does (k8s.io/kubernetes, third_party/forked/golang/expansion)."""
    return re.sub(
        r"\$(\$|\(([^)]*)\))",
        lambda match: "$" if match[1] == "$" else variables.get(match[2], match[0]),
        text,
    )


def environment_of(pod: Object, container: str) -> dict[str, str]:
    """Return the environment of a pod's container; a later variable may name earlier ones."""
    (spec,) = (each for each in pod["spec"]["containers"] if each["name"] == container)
    variables: dict[str, str] = {}
    for entry in spec.get("env") or ():
        field = entry.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
        variables[entry["name"]] = _field(pod, field) if field else expanded(entry.get("value", ""), variables)
    return variables


def _field(pod: Object, path: str) -> str:
    if label := _LABEL.fullmatch(path):
        return str((pod["metadata"].get("labels") or {}).get(label[1], ""))
    value: Any = pod
    for part in path.split("."):
        value = value[part]
    return str(value)
