"""Limits of the devices: memory, and the rates of computation and of memory."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from mldiagnostics.findings import MAX_HOSTS, Figure, Finding
from mldiagnostics.text.counts import counted_of

from mldiagnostics_diagnosis.causes import MEMORY_NEAR as NEAR
from mldiagnostics_diagnosis.rule import Rule, host_at, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_diagnosis.matching import Job


VERY_NEAR = 0.98
BUSY = 0.7
FREE = 0.5


def _memory(job: Job) -> Iterator[Finding]:
    shares = {
        index: share
        for index, each in enumerate(job.summaries)
        if each.memory and (share := each.memory.share) is not None
    }
    near = sorted(
        (index for index, share in shares.items() if share >= NEAR), key=lambda index: (-shares[index], index)
    )
    if near:
        most = shares[near[0]]
        yield Finding(
            code=MEMORY_NEAR_LIMIT.code,
            severity=severity_of(most, critical=VERY_NEAR),
            message=f"{counted_of(len(near), len(job.summaries), 'host', 'use')} up to {percent(most)} of a device's "
            f"memory: {job.summaries[near[0]].host} most.",
            next_step="Use a smaller batch, rematerialisation or more shards before the job fails for lack of memory.",
            hosts=tuple(host_at(job, index) for index in near[:MAX_HOSTS]),
            host_count=len(near),
            phase="memory",
            evidence=(Figure("share of the memory at its peak", round(most, 4), "share"),),
        )


def _rates(job: Job) -> tuple[float, float] | None:
    """Return the usual shares of the peak rates of computation and memory."""
    pairs = [
        (each.counters.compute, each.counters.memory_bandwidth)
        for each in job.summaries
        if each.counters and each.counters.compute is not None and each.counters.memory_bandwidth is not None
    ]
    if len(pairs) * 2 <= len(job.summaries):
        return None
    return median(compute for compute, _ in pairs), median(memory for _, memory in pairs)


def _compute(job: Job) -> Iterator[Finding]:
    rates = _rates(job)
    if rates and rates[0] > BUSY and rates[1] < FREE:
        yield _finding(job, COMPUTE_BOUND.code, rates, "computation", "Use lower precision, or fewer operations.")


def _bandwidth(job: Job) -> Iterator[Finding]:
    rates = _rates(job)
    if rates and rates[1] > BUSY and rates[0] < FREE:
        advice = "Fuse operations, use a smaller type, or a larger batch for each read of the weights."
        yield _finding(job, MEMORY_BANDWIDTH_BOUND.code, rates, "memory bandwidth", advice)


def _finding(job: Job, code: str, rates: tuple[float, float], what: str, advice: str) -> Finding:
    return Finding(
        code=code,
        severity="info",
        message=f"The devices are limited by {what}: {percent(rates[0])} of the peak rate of computation, "
        f"{percent(rates[1])} of that of memory.",
        next_step=advice,
        phase="compute",
        cost_s=0.0,
        cost_share=0.0,
        evidence=(
            Figure("share of the peak rate of computation", round(rates[0], 4), "share"),
            Figure("share of the peak rate of memory", round(rates[1], 4), "share"),
            Figure("time of a step", round(job.step_s, 6), "s"),
        ),
    )


MEMORY_NEAR_LIMIT = Rule(
    "MemoryNearLimit",
    "A device's memory was almost full during the trace.",
    f"{percent(NEAR)} of the limit; critical from {percent(VERY_NEAR)}",
    "traces without events of the allocator, as on CPU",
    _memory,
)
COMPUTE_BOUND = Rule(
    "ComputeBound",
    "The devices compute near their peak rate.",
    f"over {percent(BUSY)} of the peak rate of computation, under {percent(FREE)} of that of memory",
    "traces without peak rates and costs of operations on most hosts",
    _compute,
)
MEMORY_BANDWIDTH_BOUND = Rule(
    "MemoryBandwidthBound",
    "The devices read and write memory near its peak rate.",
    f"over {percent(BUSY)} of the peak rate of memory, under {percent(FREE)} of that of computation",
    "traces without peak rates and costs of operations on most hosts",
    _bandwidth,
)
