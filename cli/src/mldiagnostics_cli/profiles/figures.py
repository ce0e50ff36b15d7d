"""Figures of a session out of the summaries of its hosts; pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.findings import Diagnosis
    from mldiagnostics_diagnosis.summary import HostSummary


@dataclass(frozen=True, slots=True)
class OperationTime:
    """One operation in a step, as the mean of hosts that have it among the longest."""

    name: str
    phase: str
    count: float
    seconds: float
    hosts: int

    def to_json(self) -> dict[str, Any]:
        """Return the operation as JSON."""
        return {
            "name": self.name,
            "phase": self.phase,
            "countPerStep": self.count,
            "secondsPerStep": self.seconds,
            "hosts": self.hosts,
        }


@dataclass(frozen=True, slots=True)
class SessionFigures:
    """Figures of a session, times in seconds.

    None stands for figures that the traces do not have.
    """

    device: str
    steps: int
    """Steps that all hosts have."""
    step_s: float | None
    """Median over these steps."""
    fastest_step_s: float | None
    slowest_step_s: float | None
    phases: Mapping[str, float]
    """Shares of the time of the steps of all hosts, from 0 to 1; phases without time are left out."""
    coverage: float | None
    """The smallest share of the steps' time on a host that the phases explain."""
    operations: tuple[OperationTime, ...]
    """The longest operations of the hosts, the longest first."""
    peak_memory_bytes: int | None
    """The largest of all hosts."""

    def to_json(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        return {
            "device": self.device or None,
            "steps": self.steps,
            "stepTimeSeconds": self.step_s,
            "fastestStepSeconds": self.fastest_step_s,
            "slowestStepSeconds": self.slowest_step_s,
            "phases": dict(self.phases),
            "coverage": self.coverage,
            "operations": [operation.to_json() for operation in self.operations],
            "peakMemoryBytes": self.peak_memory_bytes,
        }


def figures_of(diagnosis: Diagnosis, summaries: Sequence[HostSummary]) -> SessionFigures:
    """Return the figures of a session.

    Those that its diagnosis has are taken from there.
    """
    with_steps = [summary for summary in summaries if summary.steps is not None]
    times = [seconds for summary in with_steps if summary.steps for seconds in summary.steps.seconds]
    return SessionFigures(
        device=", ".join(sorted({summary.device or summary.platform for summary in summaries})),
        steps=diagnosis.steps,
        step_s=diagnosis.step_s,
        fastest_step_s=min(times, default=None),
        slowest_step_s=max(times, default=None),
        phases=_phases(with_steps),
        coverage=min((summary.coverage for summary in with_steps), default=None),
        operations=_operations(summaries),
        peak_memory_bytes=max((each.memory.peak_bytes for each in summaries if each.memory), default=None),
    )


def _phases(summaries: Sequence[HostSummary]) -> dict[str, float]:
    sums: defaultdict[str, float] = defaultdict(float)
    for summary in summaries:
        for phase, series in (summary.steps.phases if summary.steps else {}).items():
            sums[phase] += sum(series)
    total = sum(sums.values())
    return {phase: seconds / total for phase, seconds in sums.items() if seconds > 0} if total else {}


def _operations(summaries: Sequence[HostSummary]) -> tuple[OperationTime, ...]:
    seen: defaultdict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for summary in summaries:
        for operation in summary.operations:
            seen[operation.name, operation.phase].append((operation.count, operation.seconds))
    operations = [
        OperationTime(name, phase, fmean(count for count, _ in each), fmean(time for _, time in each), len(each))
        for (name, phase), each in seen.items()
    ]
    return tuple(sorted(operations, key=lambda each: (-each.seconds, each.name, each.phase)))
