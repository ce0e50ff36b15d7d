"""Findings of a session from the summaries of its hosts. Pure.

Neither the order nor the names of the hosts matter.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.findings import (
    INCONCLUSIVE,
    MAX_DIAGNOSIS_BYTES,
    MAX_FINDINGS,
    MAX_HOSTS,
    Diagnosis,
    Figure,
    Finding,
    FindingHost,
)
from mldiagnostics.text.counts import counted

from mldiagnostics_diagnosis.matching import FEWEST_STEPS, LEAST_COVERAGE, match
from mldiagnostics_diagnosis.rule import percent
from mldiagnostics_diagnosis.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics_diagnosis.matching import Job
    from mldiagnostics_diagnosis.summary import HostSummary


NO_PROBLEM = "NoProblemFound"
MAX_PROBLEMS = 8
MAX_MESSAGE = 1000


def diagnose(
    summaries: Sequence[HostSummary],
    *,
    session: str,
    hosts: Mapping[str, FindingHost] | None = None,
    missing: Sequence[str] = (),
    narrowed_by: str | None = None,
) -> Diagnosis:
    """Return the findings of a session, the most expensive one first.

    Args:
        summaries: Summaries of its hosts, in any order.
        session: Name of the session.
        hosts: Rank, pod and node by the name of a summary, where they are known.
        missing: One sentence for each host of the job without a summary: `<host or file>: <problem>; <action>`.
        narrowed_by: Field of the capture that may have left out hosts of the job; None if all hosts were targets.
    """
    unique = {summary.host: summary for summary in summaries}
    job, left = match([*unique.values()], is_complete=not missing and not narrowed_by)
    certain = [finding for rule in RULES for finding in rule.find(job)]
    certain.sort(key=lambda finding: -finding.cost_s)
    # That of one host says so itself: "no comparison with others".
    doubts = [*_unseen(missing, narrowed_by if len(unique) > 1 else None), *_doubts(job, left)]
    if not certain and not doubts and job.has_steps:
        certain.append(_no_problem(job))
    known = hosts or {}
    findings = [_named(finding, known) for finding in [*certain, *doubts][:MAX_FINDINGS]]
    diagnosis = Diagnosis(session, len(unique), len(job.numbers), job.step_s or None, tuple(findings))
    while len(json.dumps(diagnosis.to_json())) > MAX_DIAGNOSIS_BYTES and len(diagnosis.findings) > 1:
        diagnosis = replace(diagnosis, findings=diagnosis.findings[:-1])
    return diagnosis


def _unseen(missing: Sequence[str], narrowed_by: str | None) -> Iterator[Finding]:
    """Yield the hosts that may be those that the others wait for."""
    if narrowed_by:
        yield _doubt(
            f"`{narrowed_by}` selects the hosts of this capture; a host of the job that it leaves out may be slow.",
            "Capture all hosts of the job: set `target.runRef` or `target.workloadRef` alone.",
        )
    for problem in missing[:MAX_PROBLEMS]:
        yield _doubt(problem[:MAX_MESSAGE], "Findings cover the other hosts. Capture again with all hosts.")
    if len(missing) > MAX_PROBLEMS:
        unnamed = counted(len(missing) - MAX_PROBLEMS, "more host", "have")
        yield _doubt(f"{unnamed} no summary.", "Capture again with all hosts.")


def _doubts(job: Job, left: Sequence[HostSummary]) -> Iterator[Finding]:
    """Yield what cannot be judged, and why."""
    without = [each for each in left if each.steps is None or not each.steps.numbers]
    if without:
        yield _doubt(
            f"{_names(without)}: no steps in the trace.",
            "Mark steps with `jax.profiler.StepTraceAnnotation`, or capture for a longer time.",
            without,
        )
    with_steps = [each for each in left if each.steps and each.steps.numbers]
    programs = {(each.platform, each.program) for each in job.summaries or with_steps}
    strangers = [each for each in with_steps if (each.platform, each.program) in programs and len(programs) == 1]
    if strangers:
        whom = "the other hosts" if job.summaries else "each other"
        yield _doubt(
            f"{_names(strangers)}: shares fewer than {FEWEST_STEPS} steps with {whom}.",
            "Keep traces of two sessions or attempts in two folders, and start all hosts at the same instant.",
            strangers,
        )
    if others := [each for each in with_steps if each not in strangers]:
        yield _doubt(
            f"{_names(others)}: executes another program than the other hosts.",
            "Capture hosts of one program and one attempt together.",
            others,
        )
    if not job.summaries:
        return
    if not job.has_steps:
        yield _doubt(
            f"Only {counted(len(job.numbers), 'step', 'are')} in all traces, fewer than {FEWEST_STEPS}.",
            "Capture for a longer time, and start all hosts at the same instant.",
        )
    elif not job.is_covered:
        share = min(each.coverage for each in job.summaries)
        yield _doubt(
            f"The traces explain only {percent(share)} of the time of a step, less than {percent(LEAST_COVERAGE)}.",
            "Capture with `tracers.host: 2` and `tracers.device: 1`.",
        )
    if len(job.summaries) > 1 and job.has_steps and not job.waits_together:
        alone = [each for each in job.summaries if not (each.steps and each.steps.waits)]
        yield _doubt(
            f"{_names(alone)}: no collectives in the trace, so the hosts cannot be compared.",
            "Capture for a longer time, or judge each host alone if it is a job of its own.",
            alone,
        )


def _doubt(message: str, next_step: str, hosts: Sequence[HostSummary] = ()) -> Finding:
    return Finding(
        code=INCONCLUSIVE,
        severity="info",
        message=message,
        next_step=next_step,
        hosts=tuple(FindingHost(each.host) for each in hosts[:MAX_HOSTS]),
        host_count=len(hosts),
    )


def _no_problem(job: Job) -> Finding:
    hosts = len(job.summaries)
    scope = f"{hosts} hosts arrive together." if job.waits_together else "One host: no comparison with others."
    return Finding(
        code=NO_PROBLEM,
        severity="info",
        message=f"No rule applies in {len(job.numbers)} steps of {job.step_s * 1000:.1f} ms. {scope}",
        next_step="Open the session in XProf to look at single operations.",
        evidence=(
            Figure("matched steps", len(job.numbers), "steps"),
            Figure("time of a step", round(job.step_s, 6), "s"),
        ),
    )


def _names(summaries: Sequence[HostSummary]) -> str:
    names = ", ".join(each.host for each in summaries[:3])
    return names if len(summaries) <= 3 else f"{names} and {len(summaries) - 3} more"


def _named(finding: Finding, known: Mapping[str, FindingHost]) -> Finding:
    """Return a finding with rank, pod and node of its hosts where they are known."""
    return replace(finding, hosts=tuple(replace(known.get(host.name, host), name=host.name) for host in finding.hosts))
