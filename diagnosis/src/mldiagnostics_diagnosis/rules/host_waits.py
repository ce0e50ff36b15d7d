"""Phases of the host that take a large share of the step on the usual host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.findings import Figure, Finding

from mldiagnostics_diagnosis.rule import Rule, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics_diagnosis.matching import Job
    from mldiagnostics_diagnosis.phases import Phase


_ABSTAINS = "fewer than 5 steps, or less than 80 % of the time explained on the median host"


def _bound(
    code: str, phase: Phase, *, warning: float, critical: float, what: str, next_step: str
) -> Callable[[Job], Iterator[Finding]]:
    """Return the search for a phase that takes a share of the step on the median host."""

    def find(job: Job) -> Iterator[Finding]:
        if not (job.has_steps and job.is_covered):
            return
        share = job.usual_share(phase)
        if share < warning:
            return
        longest = job.longest(phase)
        name = f", most of it in `{longest.name}`" if longest else ""
        yield Finding(
            code=code,
            severity=severity_of(share, critical=critical),
            message=f"The devices wait {milliseconds(share * job.step_s)} of {milliseconds(job.step_s)} in each step "
            f"for {what}{name}.",
            next_step=next_step,
            phase=phase,
            operation=longest.name if longest else None,
            cost_s=share * job.step_s,
            cost_share=share,
            evidence=(
                Figure(f"share of {phase} on the median host", round(share, 4), "share"),
                Figure("time of a step", round(job.step_s, 6), "s"),
            ),
        )

    return find


INPUT_BOUND = Rule(
    "InputBound",
    "The devices of all hosts wait for input.",
    f"{percent(0.1)} of the step on the median host; critical from {percent(0.3)}",
    _ABSTAINS,
    _bound(
        "InputBound", "input", warning=0.1, critical=0.3, what="input",
        next_step="Prefetch on another thread, add workers, or move the preprocessing out of the job.",
    ),
)  # fmt: skip
TRANSFER_BOUND = Rule(
    "TransferBound",
    "The devices of all hosts wait until the host has copied data to them.",
    f"{percent(0.1)} of the step on the median host; critical from {percent(0.3)}",
    _ABSTAINS,
    _bound(
        "TransferBound", "transfer", warning=0.1, critical=0.3, what="copies of the host's data",
        next_step="Copy the next batch while the device computes (`jax.device_put` one step ahead, `pin_memory` and "
        "`non_blocking` in PyTorch), and send smaller types.",
    ),
)  # fmt: skip
HOST_BOUND = Rule(
    "HostBound",
    "The devices of all hosts wait for Python or for launches.",
    f"{percent(0.2)} of the step on the median host; critical from {percent(0.5)}",
    _ABSTAINS,
    _bound(
        "HostBound", "host", warning=0.2, critical=0.5, what="the host's own code and launches",
        next_step="Read results later, put several steps into one program with `lax.scan`, and log less often.",
    ),
)  # fmt: skip
