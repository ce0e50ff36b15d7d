"""NetworkPolicies around a pod."""

from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics_cli.doctor.finding import State
from mldiagnostics_cli.doctor.network import network_finding, selects
from release.parts import OPERATOR
from release.render import rendered
from support.cluster import builders

PORT = 9999
POD = builders.pod(labels={"diagon.gke.io/run": "0" * 32, "app": "trainer"})


def policy(*rules: dict[str, Any], selector: dict[str, Any] | None = None, types: list[str] | None = None) -> Any:
    spec = {"podSelector": selector or {}, "ingress": list(rules), **({"policyTypes": types} if types else {})}
    return {"metadata": {"name": "closed"}, "spec": spec}


FROM_NAMESPACE = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gke-mldiagnostics"}}}


@pytest.mark.parametrize(
    ("policies", "state"),
    [
        ([], State.FINE),
        ([policy(selector={"matchLabels": {"app": "other"}})], State.FINE),
        ([policy(types=["Egress"])], State.FINE),
        ([policy()], State.BROKEN),
        ([policy({"ports": [{"port": 80}]})], State.BROKEN),
        ([policy({"ports": [{"port": PORT, "protocol": "UDP"}]})], State.BROKEN),
        ([policy({"ports": [{"port": 9000, "endPort": 10014}]})], State.FINE),
        ([policy(), policy({})], State.FINE),
        ([policy({"from": [FROM_NAMESPACE], "ports": [{"port": PORT}]})], State.FINE),
        ([policy({"from": [FROM_NAMESPACE | {"podSelector": {"matchLabels": {"app": "x"}}}]})], State.FINE),
        ([policy({"from": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}]})], State.BROKEN),
        ([policy({"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]})], State.UNKNOWN),
    ],
)
def test_policies_open_or_close_the_port(policies: list[dict[str, Any]], state: State) -> None:
    assert network_finding(POD, PORT, policies, "gke-mldiagnostics").state is state


def test_the_policies_of_the_chart_open_the_port_to_its_operator_only() -> None:
    objects = rendered(OPERATOR, {"networkPolicy.profilerPorts.namespaces": ["ml"]})
    policies = [each for each in objects if each["kind"] == "NetworkPolicy" and each["metadata"]["namespace"] == "ml"]
    assert len(policies) == 1
    assert network_finding(POD, PORT, policies, "gke-mldiagnostics").state is State.FINE
    assert network_finding(POD, PORT, policies, "elsewhere").state is not State.FINE


def test_selectors_match_as_kubernetes_does() -> None:
    def by(operator: str, *values: str) -> dict[str, Any]:
        return {"matchExpressions": [{"key": "a", "operator": operator, "values": list(values)}]}

    assert selects(by("In", "1", "2"), {"a": "1"})
    assert not selects(by("In", "1"), {})
    assert selects(by("NotIn", "1"), {})
    assert selects(by("Exists"), {"a": ""})
    assert selects(by("DoesNotExist"), {"b": ""})
