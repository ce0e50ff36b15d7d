"""Findings of a session from the summaries of its hosts. Pure.

Neither the order nor the names of the hosts matter.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.findings import (
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


INCONCLUSIVE = "Inconclusive"
NO_PROBLEM = "NoProblemFound"
MAX_PROBLEMS = 8
MAX_MESSAGE = 1000


def diagnose(
    summaries: Sequence[HostSummary],
    *,
    session: str,
    hosts: Mapping[str, FindingHost] | None = None,
    missing: Sequence[str] = (),
) -> Diagnosis:
    """Return the findings of a session, the most expensive one first.

    Args:
        summaries: Summaries of its hosts, in any order.
        session: Name of the session.
        hosts: Rank, pod and node by the name of a summary, where they are known.
        missing: One sentence for each host of the job without a summary: `<host or file>: <problem>; <action>`.
    """
    unique = {summary.host: summary for summary in summaries}
    job, left = match([*unique.values()], is_complete=not missing)
    certain = [finding for rule in RULES for finding in rule.find(job)]
    certain.sort(key=lambda finding: -finding.cost_s)
    doubts = list(_doubts(job, left, missing))
    if not certain and not doubts and job.has_steps:
        certain.append(_no_problem(job, single=len(unique) == 1))
    known = hosts or {}
    findings = [_named(finding, known) for finding in [*certain, *doubts][:MAX_FINDINGS]]
    diagnosis = Diagnosis(session, len(unique), len(job.numbers), job.step_s or None, tuple(findings))
    while len(json.dumps(diagnosis.to_json())) > MAX_DIAGNOSIS_BYTES and len(diagnosis.findings) > 1:
        diagnosis = replace(diagnosis, findings=diagnosis.findings[:-1])
    return diagnosis


def _doubts(job: Job, left: Sequence[HostSummary], missing: Sequence[str]) -> Iterator[Finding]:
    """Yield what cannot be judged, and why."""
    for problem in missing[:MAX_PROBLEMS]:
        yield _doubt(problem[:MAX_MESSAGE], "Findings cover the other hosts. Capture again with all hosts.")
    if len(missing) > MAX_PROBLEMS:
        unnamed = counted(len(missing) - MAX_PROBLEMS, "more host", "have")
        yield _doubt(f"{unnamed} no summary.", "Capture again with all hosts.")
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


def _doubt(message: str, next_step: str, hosts: Sequence[HostSummary] = ()) -> Finding:
    return Finding(
        code=INCONCLUSIVE,
        severity="info",
        message=message,
        next_step=next_step,
        hosts=tuple(FindingHost(each.host) for each in hosts[:MAX_HOSTS]),
        host_count=len(hosts),
    )


def _no_problem(job: Job, *, single: bool) -> Finding:
    scope = "One host: no comparison with others." if single else f"{len(job.summaries)} hosts arrive together."
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
