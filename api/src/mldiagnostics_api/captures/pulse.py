"""Pulses: their duration, and the traces that their diagnosis keeps. Pure."""

from collections.abc import Collection, Iterable
from math import ceil
from typing import Final

from mldiagnostics.findings import Finding
from mldiagnostics.layout import is_trace, summary_key, trace_stem

from mldiagnostics_api.v1alpha1.shared import LONGEST_PULSE_MS

SHORTEST_MS: Final = 300
STEPS: Final = 7
"""Steps of a pulse: a diagnosis compares at least five whole ones."""
MAX_SUSPECTS: Final = 8


def pulse_ms(step_time_s: float | None) -> int:
    """Return the duration of a pulse in milliseconds.

    Args:
        step_time_s: Time of a step of the run; None if it is not known.
    """
    return min(max(SHORTEST_MS, ceil(1000 * STEPS * (step_time_s or 0.0))), LONGEST_PULSE_MS)


def divided_traces(session: str, keys: Iterable[str], findings: Iterable[Finding]) -> tuple[list[str], list[str]]:
    """Return the keys of the traces that are kept, and those of the others.

    Args:
        session: Name of the session.
        keys: Its files, as keys below the log directory.
        findings: Findings of its diagnosis, the most expensive one first.
    """
    present = set(keys)
    traces = {trace_stem(key): key for key in present if is_trace(key)}
    kept = kept_hosts(findings, [stem for stem in traces if summary_key(session, stem) in present], traces)
    return sorted(traces[stem] for stem in kept), sorted(key for stem, key in traces.items() if stem not in kept)


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
