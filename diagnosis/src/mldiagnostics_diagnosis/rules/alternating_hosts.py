"""Hosts that are late in turn: another one in each step."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mldiagnostics.findings import MAX_HOSTS, Figure, Finding

from mldiagnostics_diagnosis.lateness import CRITICAL, FEWEST_LATE_STEPS, delays, late_hosts
from mldiagnostics_diagnosis.rule import Rule, host_at, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_diagnosis.matching import Job

__all__ = ["RULE"]

LATE = 0.1
OFTEN = 0.8
"""Share of the steps in which a single host is late."""
LEAST_COST = 0.1
FEWEST_TURNS = 3


def _find(job: Job) -> Iterator[Finding]:
    if not (job.waits_together and job.has_steps and job.is_complete) or late_hosts(job):
        return
    by_step = list(zip(*delays(job), strict=True))
    turns = [
        (step.index(max(step)), max(step))
        for step, seconds in zip(by_step, job.seconds, strict=True)
        if max(step) >= LATE * seconds and _stands_out(step)
    ]
    counts = Counter(host for host, _ in turns)
    named = sorted(host for host, number in counts.items() if number >= FEWEST_TURNS)
    cost = sum(delay for _, delay in turns) / len(by_step)
    if len(turns) < max(OFTEN * len(by_step), FEWEST_LATE_STEPS) or len(named) < 2 or cost < LEAST_COST * job.step_s:
        return
    names = ", ".join(job.summaries[host].host for host in named[:3]) + (", …" if len(named) > 3 else "")
    yield Finding(
        code=RULE.code,
        severity=severity_of(cost / job.step_s, critical=CRITICAL),
        message=f"In {len(turns)} of {len(by_step)} steps one host is late, each time another one ({names}): "
        f"{milliseconds(cost)} of {milliseconds(job.step_s)}.",
        next_step="Look for work that hosts do in turn: saving, logging, evaluation, shards of uneven size.",
        hosts=tuple(host_at(job, host) for host in named[:MAX_HOSTS]),
        host_count=len(named),
        cost_s=cost,
        cost_share=cost / job.step_s,
        evidence=(
            Figure("steps with one late host", len(turns), "steps"),
            Figure("matched steps", len(by_step), "steps"),
            Figure("hosts in turn", len(named), "hosts"),
        ),
    )


def _stands_out(step: tuple[float, ...]) -> bool:
    """Return whether one delay is far above all others of its step: noise makes several hosts late a little."""
    *_, second, last = sorted(step)
    return last >= 3 * max(second, 0.0)


RULE = Rule(
    "AlternatingHosts",
    "A single host is late in almost every step, but not the same one.",
    f"late by {percent(LATE)} of the step and three times as late as the next host, in {percent(OFTEN)} of the steps; "
    f"at least two hosts in {FEWEST_TURNS} steps each; {percent(LEAST_COST)} of the time",
    "one host, no collectives, fewer than 5 matched steps, a missing host, or a host that is slow as a rule",
    _find,
)
