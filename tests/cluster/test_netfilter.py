"""Removal of iptables rules: all of the cluster's and no others."""

import subprocess
import sys
from pathlib import Path

import pytest
from cluster import packages
from cluster.netfilter import chains, removal
from cluster.progress import ClusterError
from hypothesis import given
from hypothesis import strategies as st

TABLES = ("filter", "nat")
OURS = ("KUBE-SERVICES", "KUBE-SEP-AB12", "CNI-FORWARD", "CNI-0f3a9b")
THEIRS = ("DOCKER", "MY-KUBE-LIKE", "ufw-before-input")
BUILT_IN = {"filter": "FORWARD", "nat": "POSTROUTING"}

chain_sets = st.fixed_dictionaries({table: st.sets(st.sampled_from(OURS + THEIRS)) for table in TABLES})


@st.composite
def saved_tables(draw: st.DrawFn) -> str:
    lines = []
    for table, names in draw(chain_sets).items():
        places = [BUILT_IN[table], *sorted(names)]
        targets = st.sampled_from([*sorted(names), "ACCEPT"])
        rules = draw(st.lists(st.tuples(st.sampled_from(places), targets), max_size=8))
        lines += [f"*{table}", f":{BUILT_IN[table]} ACCEPT [0:0]", *(f":{name} - [0:0]" for name in sorted(names))]
        lines += [f'-A {place} -m comment --comment "to {target}" -j {target}' for place, target in rules]
        lines.append("COMMIT")
    return "\n".join(lines)


def _table_lines(text: str) -> list[tuple[str, str]]:
    table = ""
    rules = []
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
        rules.append((table, line))
    return rules


@given(saved=saved_tables(), data=st.data())
def test_only_the_clusters_chains_and_the_jumps_to_them_are_removed(saved: str, data: st.DataObject) -> None:
    present = chains(saved)
    keep = data.draw(st.sets(st.sampled_from(sorted(present)))) if present else set()
    going = present - keep
    lines = _table_lines(removal(saved, keep))
    assert {(table, line[3:]) for table, line in lines if line.startswith("-X ")} == going
    removed = [(table, "-A " + line[3:]) for table, line in lines if line.startswith("-D ")]
    wanted = [
        (table, line)
        for table, line in _table_lines(saved)
        if line.startswith("-A ") and (table, line.split()[-1]) in going and (table, line.split()[1]) not in going
    ]
    assert sorted(removed) == sorted(wanted)


def test_a_machine_without_the_cluster_is_not_changed() -> None:
    assert removal("*filter\n:FORWARD DROP [0:0]\n:DOCKER - [0:0]\n-A FORWARD -j DOCKER\nCOMMIT\n", set()) == ""


def in_own_network(script: str) -> str:
    """Run a program with the real iptables in a separate network namespace; return what it prints."""
    try:
        packages.install(packages.missing_packages({"iptables": "iptables"}))
    except ClusterError as fault:
        pytest.skip(str(fault))
    done = subprocess.run(
        ["unshare", "--net", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[2] / "e2e",
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.root
def test_the_kernel_accepts_the_removal() -> None:
    printed = in_own_network(
        """
import subprocess
from cluster import netfilter

def restore(text):
    subprocess.run(["iptables-restore"], input=text, text=True, check=True)

restore('''*filter
:FORWARD ACCEPT [0:0]
:DOCKER - [0:0]
:KUBE-FORWARD - [0:0]
:CNI-FORWARD - [0:0]
:CNI-ADMIN - [0:0]
-A FORWARD -j DOCKER
-A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
-A FORWARD -m comment --comment "kubernetes forwarding rules" -j KUBE-FORWARD
-A CNI-FORWARD -j CNI-ADMIN
-A DOCKER -d 10.1.0.0/16 -j RETURN
COMMIT
''')
netfilter.reject_unrouted('10.96.0.0/16')
netfilter.remove_cluster_rules({})
print(subprocess.run(["iptables-save", "-t", "filter"], capture_output=True, text=True, check=True).stdout)
"""
    )
    rules = [line for line in printed.splitlines() if line.startswith("-A")]
    assert rules == ["-A FORWARD -j DOCKER", "-A DOCKER -d 10.1.0.0/16 -j RETURN"]
    assert "KUBE" not in printed
    assert "CNI" not in printed


POD = """
import socket
print("started", flush=True)
input()
try:
    socket.create_connection(("10.96.0.7", 443), timeout=20)
except OSError as error:
    print(type(error).__name__, flush=True)
"""


@pytest.mark.root
def test_a_pod_cannot_leave_the_machine_for_a_service_without_endpoints() -> None:
    """The rules of the CNI plugin `firewall` accept all packets of a pod, before any that is appended."""
    printed = in_own_network(
        f"""
import pathlib, subprocess, sys
from cluster import netfilter

def ip(command, *prefix):
    subprocess.run([*prefix, "ip", *command.split()], check=True)

pod = subprocess.Popen(["unshare", "--net", sys.executable, "-c", {POD!r}], stdin=-1, stdout=-1, text=True)
pod.stdout.readline()
ip(f"link add pod type veth peer name eth0 netns {{pod.pid}}")
ip("address add 10.244.0.1/24 dev pod")
ip("link set pod up")
for command in ("address add 10.244.0.2/24 dev eth0", "link set eth0 up", "route add default via 10.244.0.1"):
    ip(command, "nsenter", "--net", "--target", str(pod.pid))
ip("link add outside type bridge")
ip("address add 192.0.2.1/24 dev outside")
ip("link set outside up")
ip("route add default via 192.0.2.2")
pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
netfilter.reject_unrouted("10.96.0.0/16")
netfilter.add_rules([
    ":CNI-FORWARD - [0:0]",
    "-A CNI-FORWARD -j CNI-ADMIN",
    "-A CNI-FORWARD -s 10.244.0.2/32 -j ACCEPT",
    "-I FORWARD -j CNI-FORWARD",
])
print(pod.communicate("go\\n")[0].strip())
"""
    )
    assert printed.strip() == "ConnectionRefusedError"
