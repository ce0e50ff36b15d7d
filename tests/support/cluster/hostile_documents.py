"""Documents of an API server that does not keep to its API: valid ones with a few faults."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from random import Random


_TIME: Final = "2026-01-01T00:00:00Z"
_OWNER: Final = {"apiVersion": "batch/v1", "kind": "Job", "name": "a", "uid": "u2", "controller": True}
_METADATA: Final = {
    "name": "a",
    "namespace": "ml",
    "uid": "u",
    "creationTimestamp": _TIME,
    "labels": {"diagnostics.mlops.dev/run": "x", "app.kubernetes.io/version": "1.0.0"},
    "annotations": {"diagnostics.mlops.dev/run": "x"},
    "ownerReferences": [_OWNER],
}
_PORT: Final = {"name": "mldiag-p", "containerPort": 9999}
_POD_SPEC: Final = {"containers": [{"name": "operator", "env": [{"name": "X", "value": "y"}], "ports": [_PORT]}]}
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": _POD_SPEC}
_CONDITIONS: Final = [
    {"type": kind, "status": "True", "reason": "R", "message": "m"}
    for kind in ("Ready", "Reporting", "Complete", "Diagnosed")
]
_RUNNING: Final = {"name": "operator", "state": {"running": {"startedAt": _TIME}}}
_FINDING: Final = {"code": "SlowHost", "severity": "warning", "message": "m"}
_OF_CAPTURE: Final = {
    **_FINDING,
    "nextStep": "n",
    "phase": "input",
    "operation": "o",
    "costSeconds": 0.1,
    "costPercent": 12,
    "targets": [{"pod": "a", "node": "n", "rank": 0}],
}
_RESULT: Final = {"pod": "a", "rank": 0, "state": "Captured", "reason": "Captured", "file": "volume:///x/a", "bytes": 7}
_PEER: Final = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "x"}}, "podSelector": {}}
_INGRESS: Final = {"from": [_PEER], "ports": [{"protocol": "TCP", "port": 9999, "endPort": 10000}]}
_POD_SELECTOR: Final = {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}

VALID: Final[dict[str, dict[str, Any]]] = {
    "pods": {
        "spec": _POD_SPEC,
        "status": {"phase": "Running", "podIP": "10.0.0.1", "conditions": _CONDITIONS, "containerStatuses": [_RUNNING]},
    },
    "jobs": {"spec": {"template": _TEMPLATE}, "status": {"ready": 1, "conditions": _CONDITIONS}},
    "cronjobs": {"spec": {"jobTemplate": {"metadata": {"labels": {}}, "spec": {"template": _TEMPLATE}}}},
    "jobsets": {"spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": _TEMPLATE}}}]}},
    "deployments": {
        "spec": {"template": _TEMPLATE, "selector": {"matchLabels": {"a": "b"}}, "replicas": 1},
        "status": {"availableReplicas": 1},
    },
    "configmaps": {"data": {"policy.json": "{}", "url": "https://a.ns.svc:1/x", "ca.crt": "x"}},
    "leases": {"spec": {"holderIdentity": "a/b/c"}},
    "endpointslices": {"endpoints": [{"conditions": {"ready": True}}]},
    "networkpolicies": {"spec": {"podSelector": _POD_SELECTOR, "policyTypes": ["Ingress"], "ingress": [_INGRESS]}},
    "mutatingwebhookconfigurations": {
        "webhooks": [
            {
                "name": "a.injection.diagnostics.mlops.dev",
                "clientConfig": {"caBundle": "eA==", "service": {"namespace": "n", "name": "s"}},
            }
        ]
    },
    "mlruns": {
        "spec": {"runId": "abcd", "workloadRef": _OWNER, "storageLocation": "volume:///x"},
        "status": {
            "runId": "abcd",
            "phase": "Active",
            "aliases": ["z"],
            "conditions": _CONDITIONS,
            "attempt": 1,
            "hosts": {"reporting": 2, "exceptions": [{"host": "a", "reason": "x", "message": "y"}]},
            "progress": {"step": 1, "stepTimeSeconds": 0.1},
            "goodput": {"ratio": 0.5},
            "startTime": _TIME,
            "metrics": {"loss": 1.5},
            "attempts": [{"attempt": 1, "startTime": _TIME, "endTime": _TIME, "reason": "r"}],
            "profileSessions": [{"id": "s", "startTime": _TIME, "directory": "volume:///x/abcd", "capture": "c"}],
            "configs": {"user": {"a": 1}},
            "findings": [{**_FINDING, "hosts": ["a"], "session": "s", "time": _TIME}],
        },
    },
    "mldiagnosticsconnections": {
        "spec": {"target": {"runId": "abcd"}},
        "status": {
            "phase": "Completed",
            "message": "m",
            "progress": "1/1",
            "sessionId": "s",
            "captureResult": {"outputLocation": "volume:///x"},
            "startSkewMilliseconds": 1,
            "bytes": 7,
            "targets": {"total": 1, "captured": 1},
            "conditions": _CONDITIONS,
            "results": [_RESULT],
            "diagnosis": {"state": "Done", "findings": [_OF_CAPTURE]},
        },
    },
    "selfsubjectaccessreviews": {"status": {"allowed": True}},
    "selfsubjectreviews": {"status": {"userInfo": {"username": "me"}}},
}
"""One object of each resource, without its metadata."""

_SCHEMA: Final = {"x-kubernetes-group-version-kind": [{"kind": "MLRun"}], "properties": {"spec": {"properties": {}}}}


def _deep(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = {"properties": [value]}
    return value


_TEXTS: Final = ("", "x", "\x1b[31mred\n", "/../x", "\ud800", _TIME)
_LEAVES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1e308,
    10**30,
    *_TEXTS,
    [],
    {},
    [None],
    {"": ""},
    {"name": 1},
    _deep(90),
)
_NAMES: Final = ("metadata", "name", "spec", "status", "items")


def valid_document(method: str, path: str) -> Any:
    """Return what an API server with one object of each resource returns."""
    if path == "/version":
        return {"gitVersion": "v1.34.0"}
    if path.startswith("/openapi"):
        return {"components": {"schemas": {"a": _SCHEMA}}}
    parts = path.strip("/").split("/")[2 if path.startswith("/api/") else 3 :]
    of_namespace = parts[2:] if parts[0] == "namespaces" and len(parts) > 2 else []
    resource, *name = of_namespace or parts
    one = {"metadata": _METADATA, **VALID.get(resource, {"spec": {}, "status": {}})}
    return one if name or method != "GET" else {"metadata": {"resourceVersion": "1"}, "items": [one, one]}


def hostile_document(random: Random, method: str, path: str) -> Any:
    """Return a document for a request: a valid one in which values are missing or replaced."""
    document = {"": copy.deepcopy(valid_document(method, path))}
    for _ in range(random.choice((0, 0, 1, 1, 1, 2, 4))):
        holder, key = random.choice(list(_places(document)) or [(document, "")])
        if key != "" and random.random() < 0.4:
            del holder[key]
        else:
            holder[key] = copy.deepcopy(_value(random))
    return document[""]


def _value(random: Random) -> Any:
    match random.randrange(6):
        case 0:
            return [random.choice(_LEAVES), random.choice(_LEAVES)]
        case 1:
            return {random.choice(_NAMES): random.choice(_LEAVES) for _ in range(2)}
        case _:
            return random.choice(_LEAVES)


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, Any]]:
    """Yield all places below a value, as a container and a key."""
    if depth < 40 and isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key], depth + 1)
