"""Two sessions, operation by operation per step. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_diagnosis.matching import match
from mldiagnostics_diagnosis.rule import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_diagnosis.matching import Job
    from mldiagnostics_diagnosis.summary import HostSummary

__all__ = ["Comparison", "OperationChange", "compare"]

MAX_OPERATIONS = 20


@dataclass(frozen=True, slots=True)
class OperationChange:
    """An operation in both sessions: the mean of the hosts, per step."""

    name: str
    phase: str
    before_s: float | None
    """None if no host of the session has it among its longest operations."""
    after_s: float | None
    hosts: int
    """Hosts of the later session that have it."""

    @property
    def change_s(self) -> float:
        """The difference in seconds per step."""
        return (self.after_s or 0.0) - (self.before_s or 0.0)

    def to_json(self) -> dict[str, Any]:
        """Return the change as JSON."""
        return {
            "name": self.name,
            "phase": self.phase,
            "beforeSeconds": self.before_s,
            "afterSeconds": self.after_s,
            "changeSeconds": self.change_s,
            "hosts": self.hosts,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """The later session beside the earlier one; the largest change first."""

    before_step_s: float
    after_step_s: float
    hosts: int
    operations: tuple[OperationChange, ...]

    @property
    def change_share(self) -> float:
        """The change of the step's time as a share of that before."""
        return self.after_step_s / self.before_step_s - 1 if self.before_step_s else 0.0

    @property
    def message(self) -> str:
        """The change of the step, and of the operation that changed most."""
        text = f"step {self.change_share * 100:+.0f} %"
        if not self.operations:
            return text
        first = self.operations[0]
        sign = "+" if first.change_s >= 0 else "-"
        scope = "all hosts" if first.hosts == self.hosts else f"{first.hosts} of {self.hosts} hosts"
        news = ", new" if first.before_s is None else ", gone" if first.after_s is None else ""
        where = "" if first.after_s is None else f" on {scope}"
        return f"{text}: `{first.name}` {sign}{milliseconds(abs(first.change_s))}{where}{news}"

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as JSON."""
        return {
            "beforeStepSeconds": self.before_step_s,
            "afterStepSeconds": self.after_step_s,
            "changeShare": self.change_share,
            "message": self.message,
            "operations": [operation.to_json() for operation in self.operations],
        }


def compare(before: Sequence[HostSummary], after: Sequence[HostSummary], *, force: bool = False) -> Comparison:
    """Return how the steps of two sessions differ, operation by operation.

    Args:
        before: Summaries of the earlier session.
        after: Summaries of the later session.
        force: Compare sessions of different devices or numbers of hosts too.

    Raises:
        ConfigurationError: A session has no steps, or the sessions differ in devices or number of hosts.
    """
    if not force and (difference := _difference(before, after)):
        raise ConfigurationError(f"{difference}; compare them anyway with --force")
    jobs = [match(summaries, is_complete=True)[0] for summaries in (before, after)]
    for name, job in zip(("the earlier session", "the later session"), jobs, strict=True):
        if not job.numbers:
            raise ConfigurationError(f"{name}: has no steps that all hosts share; capture it for a longer time")
    times = [_times(job) for job in jobs]
    changes = [
        OperationChange(
            name,
            phase,
            before_s=_mean(times[0].get((name, phase))),
            after_s=_mean(times[1].get((name, phase))),
            hosts=len(times[1].get((name, phase), ())),
        )
        for name, phase in times[0].keys() | times[1].keys()
    ]
    changes.sort(key=lambda change: (-abs(change.change_s), change.name, change.phase))
    return Comparison(jobs[0].step_s, jobs[1].step_s, len(jobs[1].summaries), tuple(changes[:MAX_OPERATIONS]))


def _difference(before: Sequence[HostSummary], after: Sequence[HostSummary]) -> str | None:
    if len(before) != len(after):
        return f"number of hosts: {len(before)} before, {len(after)} after"
    for what in ("platform", "device"):
        values = [sorted({getattr(each, what) for each in session}) for session in (before, after)]
        if values[0] != values[1]:
            return f"{what}: {', '.join(values[0])} before, {', '.join(values[1])} after"
    return None


def _times(job: Job) -> dict[tuple[str, str], list[float]]:
    """Return the seconds per step of each operation on each host that has it."""
    times: dict[tuple[str, str], list[float]] = {}
    for summary in job.summaries:
        for operation in summary.operations:
            times.setdefault((operation.name, operation.phase), []).append(operation.seconds)
    return times


def _mean(seconds: list[float] | None) -> float | None:
    return fmean(seconds) if seconds else None
