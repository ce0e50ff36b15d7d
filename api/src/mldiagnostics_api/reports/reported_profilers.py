"""Profiler ports of pods, as their processes reported them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.reports.reported_run import ReportedHost
from mldiagnostics_api.workloads.pods import MAX_PROFILER_PORTS

_FREEZING: Final = "jax"
"""The make of server whose old versions freeze a process without TensorFlow."""


@dataclass(frozen=True, slots=True)
class ReportedProfilers:
    """The profiler servers of one pod."""

    ports: tuple[int, ...]
    """By local rank."""
    safe: frozenset[int]
    """Ports of servers that a capture cannot freeze, as the host reports."""


def profilers_by_pod(hosts: Iterable[ReportedHost]) -> Mapping[str, ReportedProfilers]:
    """Return the profiler servers of each pod, by pod uid.

    Several processes of a pod report one port each, or the same ports; a process that ended has no server.
    """
    by_pod: defaultdict[str, dict[int, bool]] = defaultdict(dict)
    for host in sorted(hosts, key=lambda host: (host.rank is None, host.rank or 0, host.incarnation)):
        if not host.pod_uid or host.phase != "Active":
            continue
        is_safe = host.tensorflow is True or host.server not in ("", _FREEZING)
        ports = by_pod[host.pod_uid]
        for port in host.ports:
            if len(ports) < MAX_PROFILER_PORTS or port in ports:
                ports[port] = is_safe and ports.get(port, True)
    return {
        uid: ReportedProfilers(tuple(ports), frozenset(port for port, is_safe in ports.items() if is_safe))
        for uid, ports in by_pod.items()
        if ports
    }
