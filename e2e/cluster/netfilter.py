"""Add iptables rules for a cluster, find and remove all of its rules, and only those."""

import re
import subprocess
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from cluster.progress import ClusterError

FAMILIES = ("iptables", "ip6tables")
OURS = re.compile(r"(?:KUBE|CNI)-")
UNROUTED = "KUBE-MLDIAG-UNROUTED"
ADMIN = "CNI-ADMIN"
"""Chain that the CNI plugin `firewall` asks before it accepts all packets of pods."""


def chains(saved: str) -> set[tuple[str, str]]:
    """Return (table, chain) of all Kubernetes and CNI chains in the output of `iptables-save`."""
    by_table = set()
    table = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            chain = line[1:].split()[0]
            if OURS.match(chain):
                by_table.add((table, chain))
    return by_table


def removal(saved: str, keep: AbstractSet[tuple[str, str]]) -> str:
    """Return input for `iptables-restore --noflush` that removes the cluster's chains and jumps.

    Chains in `keep` existed before the cluster and are kept, with the jumps to them.
    """
    ours = chains(saved) - keep
    blocks = []
    for table in sorted({table for table, _ in ours}):
        names = sorted(chain for its_table, chain in ours if its_table == table)
        jumps = [line.replace("-A ", "-D ", 1) for line in _rules(saved, table) if _jumps_to(line, names)]
        declared = [f":{name} - [0:0]" for name in names]  # declaring a chain empties it
        deleted = [f"-X {name}" for name in names]
        blocks += [f"*{table}", *declared, *jumps, *deleted, "COMMIT"]
    return "\n".join([*blocks, ""]) if blocks else ""


def add_rules(rules: Sequence[str]) -> None:
    """Add rules to the table `filter`; chains with names as in `OURS` are removed with the cluster.

    Args:
        rules: Lines of the input of `iptables-restore`.

    Raises:
        ClusterError: iptables rejected the rules.
    """
    _restore("iptables", "\n".join(["*filter", *rules, "COMMIT", ""]))


def reject_unrouted(network: str) -> None:
    """Reject packets to Services that kube-proxy does not know yet, or no more.

    They would leave the machine by its default route, where a proxy for all addresses may answer.
    """
    present = chains(_save("iptables"))
    new = [name for name in (UNROUTED, ADMIN) if ("filter", name) not in present]
    jumps = [f"-A {chain} -d {network} -j {UNROUTED}" for chain in ("OUTPUT", "FORWARD", ADMIN)]
    add_rules([*(f":{name} - [0:0]" for name in new), f"-A {UNROUTED} -j REJECT", *jumps])


def existing_chains() -> dict[str, set[tuple[str, str]]]:
    """Return the current chains per family, to be kept when the cluster is removed."""
    return {family: chains(_save(family)) for family in FAMILIES}


def remove_cluster_rules(keep: dict[str, set[tuple[str, str]]]) -> None:
    """Remove the cluster's chains and jumps in both families."""
    for family in FAMILIES:
        text = removal(_save(family), keep.get(family, set()))
        if not text:
            continue
        _restore(family, text)


def _restore(family: str, text: str) -> None:
    command = [f"{family}-restore", "--noflush"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")


def _save(family: str) -> str:
    done = subprocess.run([f"{family}-save"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def _rules(saved: str, table: str) -> list[str]:
    current = ""
    rules = []
    for line in saved.splitlines():
        if line.startswith("*"):
            current = line[1:]
        elif line.startswith("-A ") and current == table:
            rules.append(line)
    return rules


def _jumps_to(rule: str, names: list[str]) -> bool:
    """Return whether a rule of a kept chain jumps to a removed one."""
    words = rule.split()
    return words[1] not in names and any(flag in {"-j", "-g"} and target in names for flag, target in pairwise(words))
