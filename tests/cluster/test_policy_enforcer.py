"""NetworkPolicies as iptables rules: selection, allowed sources, and unsupported features."""

from typing import Any

import pytest
from cluster.policy_enforcer import CHAIN, matches, rules
from cluster.progress import ClusterError

NAMESPACES = [
    {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}} for name in ("ml", "operators")
]


def pod(name: str, address: str, *, namespace: str = "ml", **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [{"ports": [{"name": "http", "containerPort": 8081}]}]},
        "status": {"podIP": address},
    }


TRAINER = pod("trainer", "10.0.0.1", run="r")
STRANGER = pod("stranger", "10.0.0.2")
OPERATOR = pod("operator", "10.0.0.3", namespace="operators", app="operator")
PODS = [TRAINER, STRANGER, OPERATOR]


def policy(*ingress: dict[str, Any], **spec: Any) -> dict[str, Any]:
    selector = {"matchExpressions": [{"key": "run", "operator": "Exists"}]}
    body = {"podSelector": selector, "policyTypes": ["Ingress"], "ingress": list(ingress), **spec}
    return {"metadata": {"name": "ports", "namespace": "ml"}, "spec": body}


def accepted(*policies: dict[str, Any]) -> list[str]:
    """Return the rules without the first (replies) and the last (rejection)."""
    return [line.removeprefix(f"-A {CHAIN} ") for line in rules(policies, PODS, NAMESPACES)][1:]


@pytest.mark.parametrize(
    ("selector", "labels", "selected"),
    [
        ({}, {}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        ({"matchLabels": None, "matchExpressions": [{"key": "a", "operator": "Exists"}]}, {"a": ""}, True),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, {}, False),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, {}, True),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b", "c"]}]}, {"a": "c"}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}, {}, True),
        ({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}, {"a": "b"}, False),
    ],
    ids=str,
)
def test_selectors_select_as_the_api_server_does(
    selector: dict[str, Any], labels: dict[str, str], *, selected: bool
) -> None:
    assert matches(selector, labels) is selected


def test_a_selected_pod_accepts_only_listed_traffic() -> None:
    everybody = {"ports": [{"protocol": "TCP", "port": 1, "endPort": 9998}, {"protocol": "UDP", "port": 53}]}
    operators = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "operators"}}}
    operator = {"from": [operators | {"podSelector": {"matchLabels": {"app": "operator"}}}], "ports": [{"port": 9999}]}
    assert accepted(policy(everybody, operator)) == [
        "-d 10.0.0.1/32 -s 0.0.0.0/0 -p tcp --dport 1:9998 -j RETURN",
        "-d 10.0.0.1/32 -s 0.0.0.0/0 -p udp --dport 53:53 -j RETURN",
        "-d 10.0.0.1/32 -s 10.0.0.3/32 -p tcp --dport 9999:9999 -j RETURN",
        "-d 10.0.0.1/32 -j REJECT",
    ]


def test_peers_without_a_namespace_are_in_the_policys_namespace() -> None:
    assert accepted(policy({"from": [{"podSelector": {}}]})) == [
        "-d 10.0.0.1/32 -s 10.0.0.1/32 -j RETURN",
        "-d 10.0.0.1/32 -s 10.0.0.2/32 -j RETURN",
        "-d 10.0.0.1/32 -j REJECT",
    ]


def test_a_named_port_is_the_pods_own() -> None:
    assert accepted(policy({"ports": [{"port": "http"}, {"port": "other"}]})) == [
        "-d 10.0.0.1/32 -s 0.0.0.0/0 -p tcp --dport 8081:8081 -j RETURN",
        "-d 10.0.0.1/32 -j REJECT",
    ]


def test_two_policies_of_a_pod_are_combined() -> None:
    lines = accepted(policy({"ports": [{"port": 1}]}), policy({"ports": [{"port": 2}]}))
    assert [line.split("--dport ")[1] for line in lines[:-1]] == ["1:1 -j RETURN", "2:2 -j RETURN"]
    assert lines[-1].endswith("REJECT")


@pytest.mark.parametrize(
    "unsupported",
    [
        policy(policyTypes=["Ingress", "Egress"]),
        policy({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),
    ],
    ids=["egress", "ip-block"],
)
def test_unsupported_features_are_rejected(unsupported: dict[str, Any]) -> None:
    with pytest.raises(ClusterError, match="supported"):
        rules([unsupported], PODS, NAMESPACES)
