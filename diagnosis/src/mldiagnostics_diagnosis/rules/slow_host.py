"""One host, or some hosts, that the others wait for in the steps."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from mldiagnostics.findings import MAX_HOSTS, Figure, Finding
from mldiagnostics.text.counts import counted, counted_of

from mldiagnostics_diagnosis.causes import LEAST_SHARE, cause_of
from mldiagnostics_diagnosis.lateness import CRITICAL, FEWEST_LATE_STEPS, OWN, SELDOM, USUAL, WARNING
from mldiagnostics_diagnosis.rule import Rule, host_at, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_diagnosis.causes import Cause
    from mldiagnostics_diagnosis.lateness import LateHost
    from mldiagnostics_diagnosis.matching import Job


WORDS: dict[str, tuple[str, str]] = {
    "input": ("its input", "Compare its data loading with another host's: shard size, disk, network, decoding."),
    "host": ("its Python code", "Look for work between two launches on this host: logging, metrics, other processes."),
    "callback": ("a callback into Python", "Remove the callback from the step, or make it asynchronous on this host."),
    "collection": (
        "Python's garbage collection",
        "Call `gc.freeze()` after start-up, and collect on all hosts together.",
    ),
    "compilation": ("compilation", "Find the shape or value that changes on this host: `JAX_LOG_COMPILES=1`."),
    "transfer": ("transfers to its device", "Check this host's PCIe link and the size of its batches."),
    "checkpoint": ("writing a checkpoint", "Save asynchronously, or let all hosts save their shards at once."),
    "memory": (
        "work that its device's memory has almost no room for",
        "Compare the memory that this host allocates: batch size, shards, caches, other processes on its device.",
    ),
    "compute": ("computation", "Compare this device with another: clock, temperature, errors, processes, batch size."),
}
UNKNOWN = ("code that its trace does not show", "Capture with `tracers.python: 1`, and check this host's machine.")


def _single(job: Job) -> Iterator[Finding]:
    late = job.late_hosts
    if len(late) == 1:
        yield _finding(job, late[0])


def _several(job: Job) -> Iterator[Finding]:
    late = job.late_hosts
    if len(late) > 1:
        causes = {host.index: cause_of(job, host) for host in late}
        phases = {cause.phase if cause else None for cause in causes.values()}
        first = causes[late[0].index]
        common = first if len(phases) == 1 else None
        names = ", ".join(job.summaries[host.index].host for host in late[:3]) + (", …" if len(late) > 3 else "")
        cost = late[0].delay_s
        why = f", all in {WORDS[common.phase][0]}" if common else ""
        yield Finding(
            code=SEVERAL.code,
            severity=severity_of(cost / job.step_s, critical=CRITICAL),
            message=f"{len(late)} of {len(job.summaries)} hosts ({names}) arrive up to {milliseconds(cost)} after the "
            f"others in each step{why}; a step takes {milliseconds(job.step_s)}.",
            next_step=WORDS[common.phase][1]
            if common
            else "Compare their rack, switch, image and data shards with those of the other hosts.",
            hosts=tuple(host_at(job, host.index) for host in late[:MAX_HOSTS]),
            host_count=len(late),
            phase=common.phase if common else None,
            operation=common.operation if common else None,
            cost_s=cost,
            cost_share=cost / job.step_s,
            evidence=tuple(
                Figure(f"delay of {job.summaries[host.index].host}", round(host.delay_s, 6), "s") for host in late[:8]
            ),
        )


def _finding(job: Job, late: LateHost) -> Finding:
    cause = cause_of(job, late)
    words, next_step = WORDS[cause.phase] if cause else UNKNOWN
    share = late.delay_s / job.step_s
    return Finding(
        code=SINGLE.code,
        severity=severity_of(share, critical=CRITICAL),
        message=_message(job, late, words, cause),
        next_step=next_step,
        hosts=(host_at(job, late.index),),
        host_count=1,
        phase=cause.phase if cause else None,
        operation=cause.operation if cause else None,
        cost_s=late.delay_s,
        cost_share=share,
        evidence=tuple(_evidence(job, late, cause)),
    )


def _message(job: Job, late: LateHost, words: str, cause: Cause | None) -> str:
    others = [median(waits) for index, waits in enumerate(job.waits) if index != late.index]
    number = len(job.numbers)
    often = "each step" if len(late.steps) * 5 >= number * 4 else counted_of(len(late.steps), number, "step")
    delay = milliseconds(late.delay_s)
    if len(late.steps) < USUAL * number:
        delay = milliseconds(late.delay_s * number / len(late.steps))
        often += f", {milliseconds(late.delay_s)} per step on average"
    who = "the other host waits" if len(others) == 1 else f"the other {counted(len(others), 'host', 'wait')}"
    name = f": `{cause.operation}`" if cause and cause.operation else ""
    return (
        f"{job.summaries[late.index].host} arrives {delay} after the others in {often}, "
        f"in {words}; {who} {milliseconds(median(others))} of {milliseconds(job.step_s)}{name}."
    )


def _evidence(job: Job, late: LateHost, cause: Cause | None) -> Iterator[Figure]:
    others = [index for index in range(len(job.summaries)) if index != late.index]
    yield Figure("time of a step", round(job.step_s, 6), "s")
    yield Figure("wait of this host", round(median(job.waits[late.index]), 6), "s")
    yield Figure("wait of the others", round(median(median(job.waits[index]) for index in others), 6), "s")
    yield Figure("arrival of this host", round(median(job.arrivals[late.index]), 6), "s")
    yield Figure("arrival of the others", round(median(median(job.arrivals[index]) for index in others), 6), "s")
    yield Figure("steps in which it is late", len(late.steps), "steps")
    yield Figure("matched steps", len(job.numbers), "steps")
    if cause:
        yield Figure(f"{cause.phase} above the others", round(cause.excess_s, 6), "s")


_THRESHOLDS = (
    f"late by {percent(WARNING)} of the rest of the step in at least {FEWEST_LATE_STEPS} matched steps, and either in "
    f"{percent(USUAL)} of the steps and in the median, where three quarters of the delays are at least half of their "
    f"median, or in at most {percent(SELDOM)}, not in a row as a rule, by at least half of the longest delay, with "
    f"{percent(OWN)} of all delays and {percent(WARNING)} of the time; "
    f"critical from {percent(CRITICAL)} of the step; a cause explains {percent(LEAST_SHARE)} of the delay"
)
SINGLE = Rule(
    "SlowHost",
    "One host arrives last at the collectives and waits least; its cause: a phase that takes longer there.",
    _THRESHOLDS,
    "one host, no collectives, fewer than 5 matched steps; the cause: less than 80 % of the host's time explained",
    _single,
)
SEVERAL = Rule(
    "SeveralSlowHosts",
    "Some hosts, at most half of them, arrive after the others.",
    f"as for SlowHost, for each of them; critical from {percent(CRITICAL)}",
    "as SlowHost; and if more than half of the hosts are late",
    _several,
)
