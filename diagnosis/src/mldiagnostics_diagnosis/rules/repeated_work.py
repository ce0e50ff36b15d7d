"""Work that does not belong into a step: compilation, and callbacks into Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.findings import MAX_HOSTS, Figure, Finding
from mldiagnostics.text.counts import counted_of

from mldiagnostics_diagnosis.rule import Rule, host_at, milliseconds, percent, severity_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics_diagnosis.matching import Job
    from mldiagnostics_diagnosis.phases import Phase


FEWEST = 5
LEAST = 0.05
CRITICAL = 0.2


def _repeated(code: str, phase: Phase, what: str, next_step: str) -> Callable[[Job], Iterator[Finding]]:
    """Return the search for hosts with a phase in many steps."""

    def find(job: Job) -> Iterator[Finding]:
        if not job.has_steps:
            return
        costs = {host: cost for host in range(len(job.summaries)) if (cost := _cost(job, host, phase))}
        if not costs:
            return
        cost = max(costs.values())
        hosts = sorted(costs, key=lambda host: (-costs[host], job.summaries[host].host))
        steps = max(_steps(job, host, phase) for host in hosts)
        longest = job.longest(phase, hosts)
        name = f": `{longest.name}`" if longest else ""
        yield Finding(
            code=code,
            severity=severity_of(cost / job.step_s, critical=CRITICAL),
            message=f"{counted_of(len(hosts), len(job.summaries), 'host', 'spend')} {milliseconds(cost)} of "
            f"{milliseconds(job.step_s)} in {what}, in {counted_of(steps, len(job.numbers), 'step')}{name}.",
            next_step=next_step,
            hosts=tuple(host_at(job, host) for host in hosts[:MAX_HOSTS]),
            host_count=len(hosts),
            phase=phase,
            operation=longest.name if longest else None,
            cost_s=cost,
            cost_share=cost / job.step_s,
            evidence=(
                Figure("steps", steps, "steps"),
                Figure(f"{phase} per step", round(cost, 6), "s"),
            ),
        )

    return find


def _cost(job: Job, host: int, phase: Phase) -> float:
    """Return the time of a phase per step on a host; 0 if it is rare or short."""
    mean = job.mean(host, phase)
    return mean if mean >= LEAST * job.step_s and _steps(job, host, phase) >= FEWEST else 0.0


def _steps(job: Job, host: int, phase: Phase) -> int:
    return sum(seconds > 0 for seconds in job.phases[host].get(phase, ()))


_THRESHOLDS = f"{percent(LEAST)} of the step in at least {FEWEST} steps of a host; critical from {percent(CRITICAL)}"
RECOMPILING = Rule(
    "Recompiling",
    "A host compiles again and again.",
    _THRESHOLDS,
    "fewer than 5 matched steps",
    _repeated(
        "Recompiling", "compilation", "compilation",
        "Keep shapes, types and static arguments constant; `JAX_LOG_COMPILES=1` or `TORCH_LOGS=recompiles` names them.",
    ),
)  # fmt: skip
DEBUG_CALLBACK = Rule(
    "DebugCallback",
    "A program calls back into Python in its steps: `jax.debug.print`, `pure_callback` and the like.",
    _THRESHOLDS,
    "fewer than 5 matched steps",
    _repeated(
        "DebugCallback", "callback", "callbacks into Python",
        "Remove debug prints and callbacks from the step, or run them every N steps.",
    ),
)  # fmt: skip
