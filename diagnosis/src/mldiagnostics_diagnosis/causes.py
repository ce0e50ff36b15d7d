"""Cause of a host's delay: the phase in which it spends more time. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Literal

from mldiagnostics_diagnosis.matching import LEAST_COVERAGE
from mldiagnostics_diagnosis.phases import PHASES

if TYPE_CHECKING:
    from mldiagnostics_diagnosis.lateness import LateHost
    from mldiagnostics_diagnosis.matching import Job
    from mldiagnostics_diagnosis.phases import Phase


LEAST_SHARE = 0.5
"""A cause explains at least half of the delay."""
ONE_OPERATION = 0.4
"""An operation is named if it explains this share of its phase's excess."""
MEMORY_NEAR = 0.95
"""Share of a device's memory from which it is almost full."""
MEMORY_ABOVE = 0.1
"""Memory is a cause only on a host that uses so much more of it than the others."""


@dataclass(frozen=True, slots=True)
class Cause:
    """The phase that makes a host late, and its operation if one stands out."""

    phase: Phase | Literal["memory"]
    excess_s: float
    """Time per step above that of the other hosts, in the steps in which the host is late."""
    operation: str | None


def cause_of(job: Job, late: LateHost) -> Cause | None:
    """Return why a host is late; None if the traces do not say it."""
    summary = job.summaries[late.index]
    if summary.coverage < LEAST_COVERAGE:
        return None
    excess = {phase: _excess(job, late, phase) for phase in PHASES if phase not in {"collective", "idle"}}
    phase = max(excess, key=lambda each: excess[each])
    delay = late.delay_s * len(job.numbers) / len(late.steps)
    is_clear = excess[phase] >= LEAST_SHARE * delay
    if (not is_clear or phase in {"compute", "transfer"}) and _is_short_of_memory(job, late.index):
        return Cause("memory", excess[phase] if is_clear else delay, _operation(job, late, phase) if is_clear else None)
    if not is_clear:
        return None
    return Cause(phase, excess[phase], _operation(job, late, phase))


def _is_short_of_memory(job: Job, host: int) -> bool:
    """Return whether only this host's device has almost no free memory."""
    shares = [each.memory.share if each.memory else None for each in job.summaries]
    own, others = shares[host], [share for index, share in enumerate(shares) if index != host and share is not None]
    if own is None or own < MEMORY_NEAR or len(others) * 2 < len(shares) - 1:
        return False
    return own - median(others) >= MEMORY_ABOVE


def _excess(job: Job, late: LateHost, phase: Phase) -> float:
    others = [host for host in range(len(job.summaries)) if host != late.index]
    return job.mean(late.index, phase, late.steps) - median(job.mean(host, phase, late.steps) for host in others)


def _operation(job: Job, late: LateHost, phase: Phase) -> str | None:
    """Return the operation that takes longer than on the other hosts, if any."""
    others = [
        {each.name: each.seconds for each in summary.operations if each.phase == phase}
        for index, summary in enumerate(job.summaries)
        if index != late.index
    ]
    excess = {
        each.name: each.seconds - median(host.get(each.name, 0.0) for host in others)
        for each in job.summaries[late.index].operations
        if each.phase == phase
    }
    name = max(excess, key=lambda each: (excess[each], each), default=None)
    total = sum(value for value in excess.values() if value > 0)
    return name if name is not None and excess[name] > 0 and excess[name] >= ONE_OPERATION * total else None
