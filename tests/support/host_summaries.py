"""Summaries of a synchronous job: every host leaves a collective when the last one has arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics_diagnosis.summary import HostSummary, Operation, Steps

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_diagnosis.phases import Phase

    Work = Mapping[Phase, float]

COMPUTE_S = 0.02
TRANSPORT_S = 0.002


def synchronous_job(
    work: Sequence[Sequence[Work]], *, names: Sequence[str] | None = None, transport_s: float = TRANSPORT_S
) -> list[HostSummary]:
    """Return the summaries of hosts that do some work in each step and then wait for the last one.

    Args:
        work: Seconds of each phase besides 20 ms of computation, by host and step.
        names: Names of the hosts.
        transport_s: Time of the collective itself.
    """
    arrivals = [[COMPUTE_S + sum(step.values()) for step in host] for host in work]
    ends = [max(step) + transport_s for step in zip(*arrivals, strict=True)]
    return [
        _summary(names[index] if names else f"host-{index}", work[index], arrivals[index], ends)
        for index in range(len(work))
    ]


def steady(hosts: int, steps: int, extra: Mapping[int, Work] | None = None) -> list[list[Work]]:
    """Return work that is the same in each step, with something extra on some hosts."""
    return [[dict((extra or {}).get(host, {}))] * steps for host in range(hosts)]


def changed(summary: HostSummary, **fields: Any) -> HostSummary:
    """Return a summary with other fields."""
    return summary.model_copy(update=fields)


def _summary(name: str, work: Sequence[Work], arrivals: Sequence[float], ends: Sequence[float]) -> HostSummary:
    waits = [end - arrival for end, arrival in zip(ends, arrivals, strict=True)]
    phases: dict[Phase, tuple[float, ...]] = {
        phase: tuple(step.get(phase, 0.0) for step in work) for phase in {phase for step in work for phase in step}
    }
    phases["compute"] = tuple(COMPUTE_S + step.get("compute", 0.0) for step in work)
    phases["collective"] = tuple(waits)
    return HostSummary(
        host=name,
        trace_bytes=1000,
        platform="cpu",
        duration_s=sum(ends),
        program="0123456789abcdef",
        steps=Steps(
            source="annotations",
            total=len(ends),
            numbers=tuple(range(100, 100 + len(ends))),
            seconds=tuple(ends),
            arrivals=tuple(arrivals),
            waits=tuple(waits),
            phases=phases,
        ),
        operations=tuple(
            Operation(name=f"op of {phase}", phase=phase, seconds=sum(series) / len(series), count=1.0)
            for phase, series in sorted(phases.items())
        ),
        coverage=1.0,
    )
