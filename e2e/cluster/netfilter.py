"""Find and remove the iptables rules that a cluster made, leaving every other rule alone."""

import re
import subprocess
from collections.abc import Set as AbstractSet
from itertools import pairwise

from cluster.progress import ClusterError

FAMILIES = ("iptables", "ip6tables")
OURS = re.compile(r"(?:KUBE|CNI)-")


def chains(saved: str) -> set[tuple[str, str]]:
    """(table, chain) of every Kubernetes and CNI chain in the output of `iptables-save`."""
    found = set()
    table = ""
    for line in saved.splitlines():
        if line.startswith("*"):
            table = line[1:]
        elif line.startswith(":"):
            chain = line[1:].split()[0]
            if OURS.match(chain):
                found.add((table, chain))
    return found


def removal(saved: str, keep: AbstractSet[tuple[str, str]]) -> str:
    """Input for `iptables-restore --noflush` that removes the cluster's chains and every jump to them.

    Chains in `keep` stood before the cluster and stay, with the rules that lead to them.
    """
    ours = chains(saved) - keep
    blocks = []
    for table in sorted({table for table, _ in ours}):
        names = sorted(chain for where, chain in ours if where == table)
        jumps = [line.replace("-A ", "-D ", 1) for line in _rules(saved, table) if _leads_in(line, names)]
        declared = [f":{name} - [0:0]" for name in names]  # declaring a chain empties it
        deleted = [f"-X {name}" for name in names]
        blocks += [f"*{table}", *declared, *jumps, *deleted, "COMMIT"]
    return "\n".join([*blocks, ""]) if blocks else ""


def existing_chains() -> dict[str, set[tuple[str, str]]]:
    """What stands now, per family, to be kept when the cluster goes."""
    return {family: chains(_save(family)) for family in FAMILIES}


def remove_cluster_rules(keep: dict[str, set[tuple[str, str]]]) -> None:
    """Remove the cluster's chains and jumps from both families."""
    for family in FAMILIES:
        text = removal(_save(family), keep.get(family, set()))
        if not text:
            continue
        command = [f"{family}-restore", "--noflush"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ClusterError(f"`{' '.join(command)}` could not remove the cluster's rules: {done.stderr.strip()}")


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


def _leads_in(rule: str, names: list[str]) -> bool:
    """A rule of a chain that stays, with a target that goes."""
    words = rule.split()
    return words[1] not in names and any(flag in {"-j", "-g"} and target in names for flag, target in pairwise(words))
