"""Profiler ports on a cluster: only the operator reaches those of a run, other ports stay open.

On the bare cluster, whose network does not enforce NetworkPolicies, `cluster.policy_enforcer` applies the rules.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from cluster import policy_enforcer
from cluster.progress import ClusterError
from cluster.provider import Provider
from demo.injecting import OPT_IN
from demo.installation import NAMESPACE, Helm, install, settings
from demo.kubectl import Kubectl, eventually
from mldiagnostics.capture.addresses import DEFAULT_PORT
from mldiagnostics_api.names import RUN_LABEL
from release.parts import OPERATOR

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("webhook", "network")]

HERE = "e2e-profiler-ports"
STRANGER = ("stranger", f"--namespace={HERE}")
OTHER_PORT = 8000
DEADLINE_S = 240
# A network that does not apply a policy within this time does not enforce policies.
ENFORCED_WITHIN_S = 15
SERVER = f"""
import http.server, threading
for port in ({DEFAULT_PORT}, {OTHER_PORT}):
    server = http.server.ThreadingHTTPServer(("", port), http.server.SimpleHTTPRequestHandler)
    threading.Thread(target=server.serve_forever).start()
"""
CONNECT = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=3).close()
except OSError as refusal:
    print(refusal)
else:
    print("connected")
"""


def pod(name: str, program: str, **labels: str) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": OPERATOR.default_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", program],
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": HERE, "labels": labels}} | {
        "spec": spec
    }


@pytest.fixture(scope="module")
def network(
    running_cluster: Provider,
    kubectl: Kubectl,
    helm: Helm,
    operator_image: list[str],
    operator_values: dict[str, Any],
) -> Iterator[None]:
    """Pods with a run, without a run, and a client; the chart closes the profiler ports of their namespace."""
    kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HERE}})
    for name, program, labels in (
        ("trainer", SERVER, {OPT_IN: "true"}),
        ("server", SERVER, {}),
        ("stranger", "import time; time.sleep(3600)", {}),
    ):
        kubectl.apply(pod(name, program, **labels))
    wait = ("wait", "--for=condition=Ready", "pod", "--all", f"--namespace={HERE}", f"--timeout={DEADLINE_S}s")
    kubectl(*wait, timeout_s=DEADLINE_S + 10)
    for name in ("trainer", "server"):
        eventually(partial(reached, kubectl, name, OTHER_PORT), f"start of {name}", deadline_s=DEADLINE_S)
    closed = {"networkPolicy.profilerPorts.namespaces": [HERE]}
    install(OPERATOR, helm, [*operator_image, *settings(operator_values | closed)])
    try:
        if enforces(kubectl):
            yield
        elif running_cluster.name == "bare":
            with rules_of(kubectl):
                yield
        else:
            pytest.skip(f"the network of {running_cluster.name} does not enforce NetworkPolicies")
    finally:
        install(OPERATOR, helm, [*operator_image, *settings(operator_values)])
        kubectl("delete", "namespace", HERE, "--wait=false")


def enforces(kubectl: Kubectl) -> bool:
    """Return whether the network enforces a policy that closes a pod completely."""
    selector = {"matchLabels": {"app": "closed"}}
    kubectl("label", "pod", "server", "app=closed", f"--namespace={HERE}")
    policy = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    kubectl.apply(policy | {"metadata": {"name": "closed", "namespace": HERE}, "spec": {"podSelector": selector}})
    try:
        return eventually(
            lambda: not reached(kubectl, "server", OTHER_PORT), "closed port", deadline_s=ENFORCED_WITHIN_S
        )
    except ClusterError:
        return False
    finally:
        kubectl("delete", "networkpolicy", "closed", f"--namespace={HERE}")
        eventually(lambda: reached(kubectl, "server", OTHER_PORT), "open port", deadline_s=DEADLINE_S)


@contextmanager
def rules_of(kubectl: Kubectl) -> Iterator[None]:
    """Apply the policies of the namespace as rules of this machine."""
    policies = kubectl.items("networkpolicies", f"--namespace={HERE}")
    pods = kubectl.items("pods", "--all-namespaces", "--field-selector=status.phase=Running")
    with policy_enforcer.enforced(policies, pods, kubectl.items("namespaces")):
        yield


def reached(kubectl: Kubectl, name: str, port: int, *, by: tuple[str, ...] = STRANGER) -> bool:
    """Return whether another pod can connect to a port of a pod."""
    address = kubectl.get("pod", name, f"--namespace={HERE}")["status"]["podIP"]
    return "connected" in kubectl("exec", *by, "--", "python", "-c", CONNECT, address, str(port))


def test_only_the_operator_reaches_the_profiler_port_of_a_run(kubectl: Kubectl) -> None:
    operator = (f"deployment/{OPERATOR.name}", f"--namespace={NAMESPACE}")
    eventually(lambda: not reached(kubectl, "trainer", DEFAULT_PORT), "closed profiler port", deadline_s=DEADLINE_S)
    assert reached(kubectl, "trainer", DEFAULT_PORT, by=operator)
    assert reached(kubectl, "trainer", OTHER_PORT), "other ports stay open"
    assert reached(kubectl, "server", DEFAULT_PORT), "a pod without a run is not protected"


def test_the_policy_selects_the_pods_of_runs_and_no_others(kubectl: Kubectl) -> None:
    policy = kubectl.get("networkpolicy", f"{OPERATOR.name}-profiler-ports", f"--namespace={HERE}")
    (expression,) = policy["spec"]["podSelector"]["matchExpressions"]
    assert expression == {"key": RUN_LABEL, "operator": "Exists"}, json.dumps(policy["spec"]["podSelector"])
    selected = kubectl.items("pods", f"--namespace={HERE}", f"--selector={RUN_LABEL}")
    assert [each["metadata"]["name"] for each in selected] == ["trainer"]
