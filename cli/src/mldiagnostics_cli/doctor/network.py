"""Whether NetworkPolicies let the operator reach a port of a pod. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_cli.doctor.finding import broken, fine, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_cli.doctor.finding import DoctorFinding

    Object = Mapping[str, Any]


OPERATOR_NAME = "mldiagnostics-connection-operator"


def network_finding(pod: Object, port: int, policies: Sequence[Object], operator_namespace: str) -> DoctorFinding:
    """Return the verdict about the way from the operator to a port of a pod.

    Args:
        pod: The pod.
        port: The port.
        policies: All NetworkPolicies of its namespace.
        operator_namespace: Namespace of the operator.
    """
    labels = pod["metadata"].get("labels") or {}
    closing = [each for each in policies if _closes(each) and selects(each["spec"].get("podSelector") or {}, labels)]
    if not closing:
        return fine("network", f"port {port}: no NetworkPolicy closes it")
    rules = [rule for policy in closing for rule in policy["spec"].get("ingress") or ()]
    open_to = [rule.get("from") or [] for rule in rules if _has_port(rule, port)]
    if any(not peers or any(_is_operator(peer, operator_namespace) for peer in peers) for peers in open_to):
        return fine("network", f"port {port}: open to the operator in namespace '{operator_namespace}'")
    names = ", ".join(sorted(policy["metadata"]["name"] for policy in closing))
    if any("ipBlock" in peer or "podSelector" in peer for peers in open_to for peer in peers):
        return unknown("network", f"port {port}: NetworkPolicy {names} opens it to some pods or addresses")
    value = f"networkPolicy.profilerPorts.namespaces={{{pod['metadata']['namespace']}}}"
    remedy = (
        f"helm upgrade {OPERATOR_NAME} charts/{OPERATOR_NAME} -n {operator_namespace} --reuse-values --set '{value}'"
    )
    return broken("network", f"port {port}: closed by NetworkPolicy {names}", remedy)


def selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects an object with labels."""
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_matches(expression, labels) for expression in selector.get("matchExpressions") or ())


def _matches(expression: Object, labels: Mapping[str, str]) -> bool:
    key, values = expression["key"], expression.get("values") or ()
    match expression["operator"]:
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels


def _closes(policy: Object) -> bool:
    return "Ingress" in (policy["spec"].get("policyTypes") or ["Ingress"])


def _has_port(rule: Object, port: int) -> bool:
    ports = rule.get("ports")
    return not ports or any(_is_port(each, port) for each in ports)


def _is_port(entry: Object, port: int) -> bool:
    if entry.get("protocol", "TCP") != "TCP":
        return False
    first = entry.get("port")
    if first is None:
        return True
    return isinstance(first, int) and first <= port <= entry.get("endPort", first)


def _is_operator(peer: Object, namespace: str) -> bool:
    """Return whether the operator's pods are a peer.

    Labels that the chart and Kubernetes set decide.
    """
    if "ipBlock" in peer or "namespaceSelector" not in peer:
        return False
    of_namespace = {"kubernetes.io/metadata.name": namespace}
    of_pod = {"app.kubernetes.io/name": OPERATOR_NAME, "app.kubernetes.io/part-of": "mldiagnostics"}
    pods = peer.get("podSelector") or {}
    wanted = {key: value for key, value in (pods.get("matchLabels") or {}).items() if key in of_pod}
    return selects(peer["namespaceSelector"] or {}, of_namespace) and selects({"matchLabels": wanted}, of_pod)
