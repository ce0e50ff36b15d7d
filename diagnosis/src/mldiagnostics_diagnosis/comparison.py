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
    from mldiagnostics_diagnosis.summary import HostSummary, Operation


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
    shapes: tuple[str, str] | None = None
    """Before and after, on the first host of the later session whose shape no host had before."""
    reshaped_hosts: int = 0

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
            "shapes": list(self.shapes) if self.shapes else None,
            "reshapedHosts": self.reshaped_hosts,
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
        news = ", new" if first.before_s is None else ", gone" if first.after_s is None else ""
        where = "" if first.after_s is None else f" on {self._scope(first.hosts)}"
        if first.shapes:
            some = "" if first.reshaped_hosts == first.hosts else f" on {self._scope(first.reshaped_hosts)}"
            news = f", new shapes{some}: {first.shapes[0]} before, {first.shapes[1]} now"
        return f"{text}: `{first.name}` {sign}{milliseconds(abs(first.change_s))}{where}{news}"

    def _scope(self, hosts: int) -> str:
        return "all hosts" if hosts == self.hosts else f"{hosts} of {self.hosts} hosts"

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
    before_of, after_of = (_operations(job) for job in jobs)
    changes = [_change(before_of.get(key, []), after_of.get(key, [])) for key in before_of.keys() | after_of.keys()]
    changes.sort(key=lambda change: (-abs(change.change_s), change.name, change.phase))
    return Comparison(jobs[0].step_s, jobs[1].step_s, len(jobs[1].summaries), tuple(changes))


def _difference(before: Sequence[HostSummary], after: Sequence[HostSummary]) -> str | None:
    if len(before) != len(after):
        return f"number of hosts: {len(before)} before, {len(after)} after"
    for what in ("platform", "device"):
        values = [sorted({getattr(each, what) for each in session}) for session in (before, after)]
        if values[0] != values[1]:
            return f"{what}: {', '.join(values[0])} before, {', '.join(values[1])} after"
    return None


def _operations(job: Job) -> dict[tuple[str, str], list[Operation]]:
    """Return each operation on each host that has it."""
    by_name: dict[tuple[str, str], list[Operation]] = {}
    for summary in job.summaries:
        for operation in summary.operations:
            by_name.setdefault((operation.name, operation.phase), []).append(operation)
    return by_name


def _change(before: Sequence[Operation], after: Sequence[Operation]) -> OperationChange:
    """Return the change of one operation, as the hosts of both sessions have it."""
    known = [each.shape for each in before if each.shape]
    new = [each.shape for each in after if known and each.shape and each.shape not in known]
    one = (*before, *after)[0]
    return OperationChange(
        one.name,
        one.phase,
        before_s=_mean(before),
        after_s=_mean(after),
        hosts=len(after),
        shapes=(known[0], new[0]) if new else None,
        reshaped_hosts=len(new),
    )


def _mean(operations: Sequence[Operation]) -> float | None:
    return fmean(each.seconds for each in operations) if operations else None
