"""Hosts that arrive together and all wait: the network is slow, not a host."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from mldiagnostics.findings import Figure, Finding

from mldiagnostics_diagnosis.rule import Rule, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_diagnosis.matching import Job


WARNING = 0.3
CRITICAL = 0.6


def _find(job: Job) -> Iterator[Finding]:
    if not (job.waits_together and job.has_steps and job.is_complete) or job.late_hosts:
        return
    last = [min(waits) for waits in zip(*job.waits, strict=True)]
    together = median(wait / seconds if seconds else 0.0 for wait, seconds in zip(last, job.seconds, strict=True))
    share = min(together, job.usual_share("collective"))
    if share < WARNING:
        return
    longest = job.longest("collective")
    name = f", most of it in `{longest.name}`" if longest else ""
    yield Finding(
        code=RULE.code,
        severity=severity_of(share, critical=CRITICAL),
        message=f"All {len(job.summaries)} hosts wait at least {milliseconds(share * job.step_s)} of "
        f"{milliseconds(job.step_s)} in collectives, also the host that arrives last{name}.",
        next_step="Check bandwidth and latency between the hosts, then fuse or overlap the collectives.",
        phase="collective",
        operation=longest.name if longest else None,
        cost_s=share * job.step_s,
        cost_share=share,
        evidence=(
            Figure("share of collectives for the last host", round(share, 4), "share"),
            Figure("time of a step", round(job.step_s, 6), "s"),
        ),
    )


RULE = Rule(
    "CommunicationBound",
    "The host that arrives last waits in collectives too: their transport takes the time.",
    f"{percent(WARNING)} of the step, for the last host and outside of computation; critical from {percent(CRITICAL)}",
    "one host, no collectives, fewer than 5 matched steps, a host that is late, or one that is missing",
    _find,
)
