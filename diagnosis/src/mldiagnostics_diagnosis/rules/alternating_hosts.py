"""Hosts that are late in turn: another one in each step."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median
from typing import TYPE_CHECKING

from mldiagnostics.findings import MAX_HOSTS, Figure, Finding

from mldiagnostics_diagnosis.lateness import CRITICAL, FEWEST_LATE_STEPS, WARNING, is_late, is_steady
from mldiagnostics_diagnosis.rule import Rule, host_at, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics_diagnosis.matching import Job


OFTEN = 0.8
"""Share of the steps in which a single host is late."""
FEWEST_TURNS = 3
LONGEST_PERIOD = 8
COVERED = 0.75
"""Share of the steps of a period that have a late host."""

Turns = list[tuple[int, float]]
"""The late host of a step, and its delay."""


def _find(job: Job) -> Iterator[Finding]:
    if not (job.waits_together and job.has_steps and job.is_complete) or job.late_hosts:
        return
    turns = _regular_turns(job) or _single_hosts(job)
    counts = Counter(host for host, _ in turns)
    named = sorted(host for host, number in counts.items() if number >= FEWEST_TURNS)
    steps = len(job.numbers)
    cost = sum(delay for _, delay in turns) / steps
    if len(named) < 2 or not is_late(cost, job.step_s):
        return
    names = ", ".join(job.summaries[host].host for host in named[:3]) + (", …" if len(named) > 3 else "")
    yield Finding(
        code=RULE.code,
        severity=severity_of(cost / job.step_s, critical=CRITICAL),
        message=f"In {len(turns)} of {steps} steps one host is late, each time another one ({names}): "
        f"{milliseconds(cost)} of {milliseconds(job.step_s)}.",
        next_step="Look for work that hosts do in turn: saving, logging, evaluation, shards of uneven size.",
        hosts=tuple(host_at(job, host) for host in named[:MAX_HOSTS]),
        host_count=len(named),
        cost_s=cost,
        cost_share=cost / job.step_s,
        evidence=(
            Figure("steps with one late host", len(turns), "steps"),
            Figure("matched steps", steps, "steps"),
            Figure("hosts in turn", len(named), "hosts"),
        ),
    )


def _single_hosts(job: Job) -> Turns:
    """Return the steps with a single late host, if these are most of the steps."""
    by_step = list(zip(*job.delays, strict=True))
    turns = [
        (step.index(max(step)), max(step))
        for step, seconds in zip(by_step, job.seconds, strict=True)
        if is_late(max(step), seconds) and _stands_out(step)
    ]
    return turns if len(turns) >= max(OFTEN * len(by_step), FEWEST_LATE_STEPS) else []


def _stands_out(step: tuple[float, ...]) -> bool:
    """Return whether one delay is far above all others of its step.

    Noise makes several hosts late a little.
    """
    *_, second, last = sorted(step)
    return last >= 3 * max(second, 0.0)


def _regular_turns(job: Job) -> Turns:
    """Return the steps in which a host is late whose turn repeats.

    Noise keeps no order.
    """
    for period in range(2, LONGEST_PERIOD + 1):
        groups: dict[int, list[int]] = defaultdict(list)
        for index, number in enumerate(job.numbers):
            groups[number % period].append(index)
        if min(map(len, groups.values())) < FEWEST_LATE_STEPS:
            continue
        late = {indexes[0]: _late_host(job, indexes) for indexes in groups.values()}
        hosts = [host for host in late.values() if host is not None]
        if len(hosts) >= COVERED * period and len(set(hosts)) > 1:
            return [
                (host, job.delays[host][index])
                for indexes in groups.values()
                if (host := late[indexes[0]]) is not None
                for index in indexes
            ]
    return []


def _late_host(job: Job, indexes: Sequence[int]) -> int | None:
    """Return the host that is late in some steps as a rule."""
    series = [[delays[index] for index in indexes] for delays in job.delays]
    usual = [median(each) for each in series]
    host = usual.index(max(usual))
    seconds = median(job.seconds[index] for index in indexes)
    return host if is_late(usual[host], seconds) and is_steady(series[host]) else None


RULE = Rule(
    "AlternatingHosts",
    "A single host is late in almost every step, but not the same one.",
    f"late by {percent(WARNING)} of the rest of the step; either in regular turns, at least {FEWEST_LATE_STEPS} each, "
    f"or three times as late as the next host in {percent(OFTEN)} of the steps; at least two hosts in {FEWEST_TURNS} "
    f"steps each; {percent(WARNING)} of the time",
    "one host, no collectives, fewer than 5 matched steps, a missing host, or a host that is slow as a rule",
    _find,
)
