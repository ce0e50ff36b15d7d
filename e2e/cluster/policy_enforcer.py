"""NetworkPolicies as iptables rules, for the bare cluster, whose network does not enforce them.

A snapshot, not a controller: `enforced` reads policies, pods and namespaces once. Supports the features that the charts
use (ingress, label selectors, ports by number, range or name) and raises an error for others.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from cluster import netfilter
from cluster.progress import ClusterError

Object = Mapping[str, Any]

# Removed with the other chains of Kubernetes when the cluster is removed (netfilter.OURS).
CHAIN = "KUBE-MLDIAG-POLICIES"
ANYBODY = "0.0.0.0/0"


def rules(policies: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object]) -> list[str]:
    """Return the rules of the chain: accepted traffic of each selected pod, then a rejection.

    Raises:
        ClusterError: a policy uses an unsupported feature.
    """
    labels = {each["metadata"]["name"]: each["metadata"].get("labels", {}) for each in namespaces}
    accepted: dict[str, list[str]] = {}
    for policy in policies:
        spec, namespace = policy["spec"], policy["metadata"]["namespace"]
        if "Ingress" not in spec.get("policyTypes", ["Ingress"]) or "Egress" in spec.get("policyTypes", ()):
            raise ClusterError(f"NetworkPolicy {policy['metadata']['name']}: only ingress is supported")
        for pod in pods:
            if pod["metadata"]["namespace"] == namespace and matches(spec["podSelector"], _labels(pod)):
                openings = accepted.setdefault(_address(pod), [])
                for rule in spec.get("ingress", ()):
                    openings += _openings(rule, pod, pods, labels)
    lines = [f"-A {CHAIN} -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN"]
    for address, openings in accepted.items():
        lines += [f"-A {CHAIN} -d {address} {opening} -j RETURN" for opening in openings]
        lines.append(f"-A {CHAIN} -d {address} -j REJECT")
    return lines


def matches(selector: Object, labels: Mapping[str, str]) -> bool:
    """Return whether a label selector selects these labels; an empty one selects all."""
    expressions = [
        {"key": key, "operator": "In", "values": [value]} for key, value in (selector.get("matchLabels") or {}).items()
    ]
    return all(_holds(each, labels) for each in [*expressions, *(selector.get("matchExpressions") or ())])


@contextmanager
def enforced(policies: Sequence[Object], pods: Sequence[Object], namespaces: Sequence[Object]) -> Iterator[None]:
    """Apply the rules to all forwarded traffic while the block runs (root, Linux).

    Raises:
        ClusterError: iptables rejected the rules.
    """
    chain = [f":{CHAIN} - [0:0]", *rules(policies, pods, namespaces), f"-I FORWARD 1 -j {CHAIN}"]
    netfilter.add_rules(chain)
    try:
        yield
    finally:
        netfilter.add_rules([f":{CHAIN} - [0:0]", f"-D FORWARD -j {CHAIN}", f"-X {CHAIN}"])


def _holds(expression: Object, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case other:
            raise ClusterError(f"operator {other!r}: unknown in label selectors")


def _openings(
    rule: Object, pod: Object, pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Return sources and ports that a rule accepts for this pod."""
    ports = [opening for each in rule.get("ports", ()) for opening in _port(each, pod)] if "ports" in rule else [""]
    sources = _sources(rule, pods, namespaces, pod["metadata"]["namespace"])
    return [f"-s {source}{port}" for source in sources for port in ports]


def _sources(
    rule: Object, pods: Sequence[Object], namespaces: Mapping[str, Mapping[str, str]], namespace: str
) -> list[str]:
    if not rule.get("from"):
        return [ANYBODY]
    addresses = []
    for peer in rule["from"]:
        if "ipBlock" in peer:
            raise ClusterError("ipBlock: only label selectors are supported")
        selector = peer.get("namespaceSelector")
        for pod in pods:
            own = pod["metadata"]["namespace"]
            selected = matches(selector, namespaces[own]) if selector is not None else own == namespace
            if selected and matches(peer.get("podSelector", {}), _labels(pod)):
                addresses.append(_address(pod))
    return addresses


def _port(port: Object, pod: Object) -> list[str]:
    """Return the match of a port; nothing for a name that the pod does not have."""
    number = port["port"]
    protocol = port.get("protocol", "TCP")
    if isinstance(number, int):
        return [f" -p {protocol.lower()} --dport {number}:{port.get('endPort', number)}"]
    declared = [each for container in pod["spec"]["containers"] for each in container.get("ports", ())]
    named = [each for each in declared if (each.get("name"), each.get("protocol", "TCP")) == (number, protocol)]
    return [f" -p {protocol.lower()} --dport {each['containerPort']}:{each['containerPort']}" for each in named]


def _labels(pod: Object) -> Mapping[str, str]:
    labels: Mapping[str, str] = pod["metadata"].get("labels", {})
    return labels


def _address(pod: Object) -> str:
    return f"{pod['status']['podIP']}/32"
