"""Shapes of the objects of an API server, without unread fields; pure.

A shape is a type, `[shape]` for a list, or fields by name, where `name!` is required and `*` stands for every name.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

Json = dict[str, Any]
Shape = Any


TIME: Final = "time"
"""A text in the format of RFC 3339."""

_TEXTS: Final = {"*": str}
_OWNER: Final = {"apiVersion!": str, "kind!": str, "name!": str, "uid!": str, "controller": bool}
_OF_TEMPLATE: Final = {"labels": _TEXTS, "annotations": _TEXTS, "ownerReferences": [_OWNER]}
_OF_CLUSTER: Final = {
    **_OF_TEMPLATE,
    "name!": str,
    "uid!": str,
    "creationTimestamp!": TIME,
    "deletionTimestamp": TIME,
    "resourceVersion": str,
}
_METADATA: Final = {**_OF_CLUSTER, "namespace!": str}
_CONDITION: Final = {"type!": str, "status!": str, "reason": str, "message": str}

_CONTAINER: Final = {
    "name!": str,
    "image": str,
    "env": [{"name!": str, "value": str}],
    "ports": [{"name": str, "containerPort!": int}],
    "restartPolicy": str,
}
_POD_SPEC: Final = {
    "containers!": [_CONTAINER],
    "initContainers": [_CONTAINER],
    "nodeName": str,
    "hostNetwork": bool,
    "restartPolicy": str,
}
_TEMPLATE: Final = {"metadata": _OF_TEMPLATE, "spec!": _POD_SPEC}
_PAUSE: Final = {"reason": str, "message": str}
_CONTAINER_STATUSES: Final = [{"name!": str, "state": {"running": dict, "waiting": _PAUSE, "terminated": _PAUSE}}]
_POD_STATUS: Final = {
    "phase": str,
    "podIP": str,
    "conditions": [_CONDITION],
    "containerStatuses": _CONTAINER_STATUSES,
    "initContainerStatuses": _CONTAINER_STATUSES,
}
_SELECTOR: Final = {
    "matchLabels": _TEXTS,
    "matchExpressions": [{"key!": str, "operator!": str, "values": [str]}],
}
_PEER: Final = {"podSelector": _SELECTOR, "namespaceSelector": _SELECTOR, "ipBlock": dict}
_INGRESS: Final = {"from": [_PEER], "ports": [{"protocol": str, "endPort": int}]}
_ENTRY: Final = {"name!": str, "clientConfig!": {"caBundle": str, "service": {"namespace!": str, "name!": str}}}


_RESULT: Final = {
    "pod!": str,
    "node": str,
    "rank": int,
    "state!": str,
    "reason!": str,
    "message": str,
    "file": str,
    "bytes": int,
}
_FINDING: Final = {
    "code!": str,
    "severity!": str,
    "message!": str,
    "nextStep!": str,
    "phase": str,
    "operation": str,
    "costSeconds": float,
    "costPercent": float,
    "targets": [{"pod!": str, "node": str, "rank": int}],
}
_CAPTURE_STATUS: Final = {
    "phase": str,
    "message": str,
    "progress": str,
    "sessionId": str,
    "captureResult": {"outputLocation": str},
    "startSkewMilliseconds": int,
    "bytes": int,
    "targets": {"total": int, "captured": int},
    "conditions": [_CONDITION],
    "results": [_RESULT],
    "diagnosis": {"state": str, "findings": [_FINDING]},
}


def _object(**fields: Shape) -> Shape:
    return {"metadata!": _METADATA, "spec": dict, "status": dict, **fields}


_WORKLOAD: Final = {"selector": _SELECTOR, "template!": _TEMPLATE, "replicas": int}
_DEFAULT: Final = _object()
_BY_RESOURCE: Final[Json] = {
    "pods": _object(**{"spec!": _POD_SPEC, "status": _POD_STATUS}),
    "jobs": _object(
        **{
            "spec!": {"template!": _TEMPLATE},
            "status": {"ready": int, "failed": int, "conditions": [_CONDITION]},
        }
    ),
    "deployments": _object(**{"spec!": _WORKLOAD, "status": {"availableReplicas": int}}),
    "statefulsets": _object(**{"spec!": _WORKLOAD}),
    "replicasets": _object(**{"spec!": _WORKLOAD}),
    "configmaps": _object(data=_TEXTS),
    "leases": _object(spec={"holderIdentity": str}),
    "endpointslices": _object(endpoints=[{"conditions": {"ready": bool}}]),
    "networkpolicies": _object(**{"spec!": {"podSelector": _SELECTOR, "policyTypes": [str], "ingress": [_INGRESS]}}),
    "mlruns": _object(
        status={"runId": str, "aliases": [str], "conditions": [{**_CONDITION, "message!": str, "reason!": str}]}
    ),
    "mldiagnosticsconnections": _object(**{"spec!": dict, "status": _CAPTURE_STATUS}),
    "namespaces": {"metadata!": _OF_CLUSTER},
    "mutatingwebhookconfigurations": {"metadata!": _OF_CLUSTER, "webhooks": [_ENTRY]},
    "selfsubjectaccessreviews": {"status!": {"allowed": bool}},
    "selfsubjectreviews": {"status!": {"userInfo!": {"username": str}}},
}
LIST: Final = {"metadata!": {"resourceVersion": str, "continue": str}, "items": list, "rows": [{"cells!": list}]}
STATUS: Final = {"status": str, "message": str, "details": {"causes": [{"reason": str, "message": str}]}}
"""`metav1.Status`, the answer to a failed request and the end of a program in a container."""
_SCHEMA: Final[Json] = {"x-kubernetes-group-version-kind": [{"kind!": str}]}
_SCHEMA["properties"] = {"*": _SCHEMA}
_DISCOVERY: Final[Json] = {"groups": [{"name!": str}], "resources": [{"name!": str}]}
"""Groups of the API, or the resources of one."""
_BY_PATH: Final[Json] = {"/openapi/": {"components!": {"schemas!": {"*": _SCHEMA}}}, "/version": {"gitVersion": str}}


def shape_of(path: str, *, metadata_only: bool = False) -> Shape:
    """Return the shape of an object at a URL path, or of the items of a list there.

    Args:
        path: URL path, as `apiserver.path_to` builds it, or of a group or version of the API.
        metadata_only: Whether only the metadata is requested.
    """
    for prefix, shape in _BY_PATH.items():
        if path.startswith(prefix):
            return shape
    parts = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
    if not parts:
        return _DISCOVERY
    resource = parts[2] if parts[0] == "namespaces" and len(parts) > 2 else parts[0]
    whole: Json = _BY_RESOURCE.get(resource) or _DEFAULT
    return {"metadata!": whole.get("metadata!", _METADATA)} if metadata_only else whole


def problem_of(document: Any, shape: Shape, place: str = "") -> str | None:
    """Return the first problem of a document; None if it has the shape.

    Example: `metadata.uid is missing`.

    A null in place of a known field is removed, as it means the same as a missing one.
    """
    match shape:
        case dict():
            return (
                _problem_of_fields(document, shape, place) if isinstance(document, dict) else _not(place, "an object")
            )
        case list():
            items = enumerate(document) if isinstance(document, list) else None
            if items is None:
                return _not(place, "a list")
            return next(
                (problem for n, each in items if (problem := problem_of(each, shape[0], f"{place}[{n}]"))), None
            )
        case "time":
            return None if _is_time(document) else _not(place, "a time")
        case _:
            of_shape = isinstance(document, int | float if shape is float else shape)
            is_bool_for_number = shape in (int, float) and isinstance(document, bool)
            return None if of_shape and not is_bool_for_number else _not(place, _NAMES[shape])


_NAMES: Final[dict[type, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    list: "a list",
}


def _problem_of_fields(document: Json, shape: Json, place: str) -> str | None:
    if each := shape.get("*"):
        return next(
            (problem for name, value in document.items() if (problem := problem_of(value, each, f"{place}.{name}"))),
            None,
        )
    for field, of_field in shape.items():
        name = field.removesuffix("!")
        inner = f"{place}.{name}" if place else name
        if document.get(name) is None:
            document.pop(name, None)
            if field != name:
                return f"{inner} is missing"
        elif problem := problem_of(document[name], of_field, inner):
            return problem
    return None


def _not(place: str, wanted: str) -> str:
    return f"{place or 'it'} is not {wanted}"


def _is_time(value: object) -> bool:
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
