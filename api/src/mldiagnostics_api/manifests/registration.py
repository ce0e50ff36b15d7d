"""The webhook's registration and RBAC rules, made from the table of kinds."""

from typing import Any, Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, GROUP, OPT_IN_LABEL
from mldiagnostics_api.resources import SCHEDULES
from mldiagnostics_api.workloads.kinds import LONE_POD, WORKLOADS, WorkloadKind
from mldiagnostics_api.workloads.matching import EXCLUDED_NAMESPACES, EXCLUDED_PREFIX

NAMESPACE_PATH: Final = "/mutate/namespace"
"""Receives the pods of labelled namespaces."""
WORKLOAD_PATH: Final = "/mutate/workload"
"""Receives the pods of all other namespaces, because pods do not have their workload's label."""

AUTHOR_PATH: Final = "/mutate/author"
"""Receives schedules whose author is noted."""

TIMEOUT_S: Final = 3

_OWNERS: Final = tuple(workload for workload in WORKLOADS if workload is not LONE_POD and not workload.groups)


def webhooks() -> list[dict[str, Any]]:
    """Return the entries of the configuration, without Service and certificate.

    All selectors of an entry must match, so each of the two labels needs its own entry. The chart adds its own
    namespace to the excluded ones.
    """
    return [
        _pod_entry("namespace", NAMESPACE_PATH, {"key": OPT_IN_LABEL, "operator": "In", "values": ["true"]}),
        _pod_entry("workload", WORKLOAD_PATH, {"key": OPT_IN_LABEL, "operator": "NotIn", "values": ["true"]}),
        _author_entry(),
    ]


def rules() -> list[dict[str, Any]]:
    """Return the cluster-wide RBAC rules: namespaces and all kinds that can own a pod."""
    by_group: dict[str, list[str]] = {"": ["namespaces"]}
    for workload in _OWNERS:
        by_group.setdefault(workload.group, []).append(workload.plural)
    verbs = ["get", "list", "watch"]
    return [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds in by_group.items()]


def _author_entry() -> dict[str, Any]:
    """Return the entry that notes the authors of schedules.

    Without the webhook they are not noted: a schedule can be changed at any time.
    """
    schedules = {"apiGroups": [SCHEDULES.group], "apiVersions": ["*"], "resources": [SCHEDULES.plural]}
    return {
        **_entry("author", AUTHOR_PATH, schedules | {"operations": ["CREATE", "UPDATE"]}),
        "namespaceSelector": {"matchExpressions": [_excluded()]},
    }


def _pod_entry(label_of: str, path: str, selector: dict[str, Any]) -> dict[str, Any]:
    exempt = {"key": EXEMPT_NAMESPACE_LABEL, "operator": "NotIn", "values": ["true"]}
    opted_out = {"key": OPT_IN_LABEL, "operator": "NotIn", "values": ["false"]}
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"]}
    return {
        **_entry(f"{label_of}.injection", path, pods),
        "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {"matchExpressions": [selector, exempt, _excluded()]},
        "objectSelector": {"matchExpressions": [opted_out]},
        "matchConditions": [
            {"name": "not-of-the-platform", "expression": f"!request.namespace.startsWith('{EXCLUDED_PREFIX}')"},
            {"name": "may-be-of-a-run", "expression": f"{_owned()} || {_labelled()}"},
        ],
    }


def _entry(name: str, path: str, rule: dict[str, list[str]]) -> dict[str, Any]:
    return {
        "name": f"{name}.{GROUP}",
        "clientConfig": {"service": {"path": path}},
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "rules": [rule | {"scope": "Namespaced"}],
    }


def _excluded() -> dict[str, Any]:
    return {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": sorted(EXCLUDED_NAMESPACES)}


def _owned() -> str:
    """Return the CEL expression: a kind of the table controls the pod."""
    kinds = ", ".join(f"'{_group_kind(workload)}'" for workload in _OWNERS)
    of_table = f"(o.apiVersion.split('/')[0] + '/' + o.kind) in [{kinds}]"
    controls = f"has(o.controller) && o.controller && {of_table}"
    return f"(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, {controls}))"


def _labelled() -> str:
    """Return the CEL expression: the pod itself has the label."""
    value = f"object.metadata.labels['{OPT_IN_LABEL}']"
    return f"(has(object.metadata.labels) && '{OPT_IN_LABEL}' in object.metadata.labels && {value} == 'true')"


def _group_kind(workload: WorkloadKind) -> str:
    return f"{workload.group}/{workload.kind}"
