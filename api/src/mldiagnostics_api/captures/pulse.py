"""Traces of a pulse that are kept after its diagnosis. Pure."""

from collections.abc import Collection, Iterable
from typing import Final

from mldiagnostics.findings import Finding

__all__ = ["kept_hosts"]

MAX_SUSPECTS: Final = 8


def kept_hosts(findings: Iterable[Finding], summarized: Collection[str], hosts: Collection[str]) -> frozenset[str]:
    """Return the hosts whose traces are kept.

    These are suspects, one other host to compare with, and those without a summary.

    Args:
        findings: Findings of the diagnosis, the most expensive one first.
        summarized: Hosts whose summary is stored.
        hosts: Hosts with a trace, by the stem of its file.
    """
    named = [host.name for finding in findings if finding.severity != "info" for host in finding.hosts]
    suspects = [name for name in dict.fromkeys(named) if name in hosts][:MAX_SUSPECTS]
    healthy = sorted(host for host in hosts if host not in named)[:1]
    return frozenset([*suspects, *healthy, *(host for host in hosts if host not in summarized)])
