"""What the webhook is registered for and may read, written from the table of kinds: for the chart."""

from typing import Any, Final

from mldiagnostics_api.matching import EXCLUDED_NAMESPACES, EXCLUDED_PREFIX
from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, GROUP, OPT_IN_LABEL
from mldiagnostics_api.workloads import LONE_POD, WORKLOADS, WorkloadKind

NAMESPACE_PATH: Final = "/mutate/namespace"
"""Where pods of labelled namespaces are sent."""
WORKLOAD_PATH: Final = "/mutate/workload"
"""Where the pods of all other namespaces are sent: the label of a workload is not on its pods."""

TIMEOUT_S: Final = 3

_OWNERS: Final = tuple(workload for workload in WORKLOADS if workload is not LONE_POD and not workload.groups)


def webhooks() -> list[dict[str, Any]]:
    """List the entries of the MutatingWebhookConfiguration, without the Service and its certificate.

    An entry ands its selectors, so that each of the two labels has its own. The chart adds its own namespace to those
    that are left out.
    """
    return [
        _entry("namespace", NAMESPACE_PATH, {"key": OPT_IN_LABEL, "operator": "In", "values": ["true"]}),
        _entry("workload", WORKLOAD_PATH, {"key": OPT_IN_LABEL, "operator": "NotIn", "values": ["true"]}),
    ]


def rules() -> list[dict[str, Any]]:
    """List what the webhook reads in the whole cluster: metadata of namespaces and of what can own a pod."""
    by_group: dict[str, list[str]] = {"": ["namespaces"]}
    for workload in _OWNERS:
        by_group.setdefault(workload.group, []).append(workload.plural)
    verbs = ["get", "list", "watch"]
    return [{"apiGroups": [group], "resources": kinds, "verbs": verbs} for group, kinds in by_group.items()]


def _entry(label_of: str, path: str, selects: dict[str, Any]) -> dict[str, Any]:
    left_out = {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": sorted(EXCLUDED_NAMESPACES),
    }
    exempt = {"key": EXEMPT_NAMESPACE_LABEL, "operator": "NotIn", "values": ["true"]}
    opted_out = {"key": OPT_IN_LABEL, "operator": "NotIn", "values": ["false"]}
    return {
        "name": f"{label_of}.injection.{GROUP}",
        "clientConfig": {"service": {"path": path}},
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Ignore",
        "matchPolicy": "Equivalent",
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_S,
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "resources": ["pods"],
                "operations": ["CREATE"],
                "scope": "Namespaced",
            }
        ],
        "namespaceSelector": {"matchExpressions": [selects, exempt, left_out]},
        "objectSelector": {"matchExpressions": [opted_out]},
        "matchConditions": [
            {"name": "not-of-the-platform", "expression": f"!request.namespace.startsWith('{EXCLUDED_PREFIX}')"},
            {"name": "may-be-of-a-run", "expression": f"{_owned()} || {_labelled()}"},
        ],
    }


def _owned() -> str:
    """Write in CEL that a kind of the table controls the pod."""
    kinds = ", ".join(f"'{_group_kind(workload)}'" for workload in _OWNERS)
    of_table = f"(o.apiVersion.split('/')[0] + '/' + o.kind) in [{kinds}]"
    controls = f"has(o.controller) && o.controller && {of_table}"
    return f"(has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, {controls}))"


def _labelled() -> str:
    """Write in CEL that the pod itself has the label."""
    value = f"object.metadata.labels['{OPT_IN_LABEL}']"
    return f"(has(object.metadata.labels) && '{OPT_IN_LABEL}' in object.metadata.labels && {value} == 'true')"


def _group_kind(workload: WorkloadKind) -> str:
    return f"{workload.group}/{workload.kind}"
