"""NetworkPolicies of the chart as rules of a real kernel, with network namespaces as pods."""

import json
import subprocess
import sys
from typing import Any

import pytest
from cluster import packages
from cluster.paths import E2E
from mldiagnostics.capture.addresses import DEFAULT_PORT
from mldiagnostics_api.names import RUN_LABEL
from release.parts import NAMESPACE, OPERATOR
from release.render import rendered

# Needs no API server, but the tools of that stage: helm, and a kernel that may be configured.
pytestmark = pytest.mark.apiserver

OTHER_PORT = 8000
SCRIPT = """
import json, subprocess, sys
from cluster import policy_enforcer

SERVER = '''
import socket, sys, threading
listening = [socket.create_server(("", int(port))) for port in sys.argv[1:]]
print("ready", flush=True)
sys.stdin.read()
'''
CONNECT = '''
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
except OSError:
    sys.exit(1)
'''

def run(*command):
    subprocess.run(command, check=True)

def within(pod, program, *arguments):
    return ["ip", "netns", "exec", pod, sys.executable, "-c", program, *map(str, arguments)]

scene = json.load(sys.stdin)
run("mount", "-t", "tmpfs", "tmpfs", "/run")
open("/proc/sys/net/ipv4/ip_forward", "w").write("1")
addresses = {}
for pod in scene["pods"]:
    name, address = pod["metadata"]["name"], pod["status"]["podIP"]
    gateway, addresses[name] = address.rpartition(".")[0] + ".1", address
    run("ip", "netns", "add", name)
    run("ip", "link", "add", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
    run("ip", "address", "add", f"{gateway}/24", "dev", f"to-{name}")
    run("ip", "link", "set", f"to-{name}", "up")
    run("ip", "-netns", name, "address", "add", f"{address}/24", "dev", "eth0")
    run("ip", "-netns", name, "link", "set", "eth0", "up")
    run("ip", "-netns", name, "route", "add", "default", "via", gateway)
servers = []
for name in scene["servers"]:
    server = subprocess.Popen(within(name, SERVER, *scene["ports"]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    server.stdout.readline()
    servers.append(server)

def reached():
    return [
        [source, target, port]
        for source in scene["clients"] for target in scene["servers"] for port in scene["ports"]
        if subprocess.run(within(source, CONNECT, addresses[target], port)).returncode == 0
    ]

reachable = {"before": reached()}
with policy_enforcer.enforced(scene["policies"], scene["pods"], scene["namespaces"]):
    reachable["closed"] = reached()
reachable["after"] = reached()
for server in servers:
    server.communicate()
print(json.dumps(reachable))
"""


@pytest.fixture
def iptables() -> None:
    if sys.platform != "linux":
        pytest.skip("network namespaces and iptables need Linux")
    packages.install(packages.missing_packages({"iptables": "iptables", "ip": "iproute2"}))


def pod(number: int, name: str, namespace: str, labels: dict[str, str]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "status": {"podIP": f"198.18.{number}.2"}}


@pytest.mark.root
@pytest.mark.usefixtures("iptables")
def test_only_the_operator_reaches_the_profiler_ports_of_a_run() -> None:
    objects = rendered(OPERATOR, {"networkPolicy.profilerPorts.namespaces": ["ml"]})
    (policy,) = (each for each in objects if each["metadata"]["name"] == f"{OPERATOR.name}-profiler-ports")
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    pods = [
        pod(1, "trainer", "ml", {RUN_LABEL: "0123"}),
        pod(2, "server", "ml", {}),
        pod(3, "stranger", "ml", {}),
        pod(4, "impostor", "ml", deployment["spec"]["template"]["metadata"]["labels"]),
        pod(5, "operator", NAMESPACE, deployment["spec"]["template"]["metadata"]["labels"]),
    ]
    namespaces = [
        {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}} for name in ("ml", NAMESPACE)
    ]
    clients, servers = ["stranger", "impostor", "operator"], ["trainer", "server"]
    ports = [DEFAULT_PORT, OTHER_PORT]
    scene = {"policies": [policy], "pods": pods, "namespaces": namespaces, "clients": clients, "servers": servers}
    done = subprocess.run(
        ["unshare", "--net", "--mount", sys.executable, "-c", SCRIPT],
        input=json.dumps(scene | {"ports": ports}),
        capture_output=True,
        text=True,
        check=False,
        cwd=E2E,
    )
    assert done.returncode == 0, done.stderr
    reachable = json.loads(done.stdout)
    everything = [[client, server, port] for client in clients for server in servers for port in ports]
    assert reachable["before"] == reachable["after"] == everything
    refused = [["stranger", "trainer", DEFAULT_PORT], ["impostor", "trainer", DEFAULT_PORT]]
    assert reachable["closed"] == [each for each in everything if each not in refused]
