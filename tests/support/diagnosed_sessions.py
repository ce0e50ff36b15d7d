"""Sessions with a diagnosis, written directly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mldiagnostics.findings import Diagnosis, Figure, Finding, FindingHost
from mldiagnostics.layout import diagnosis_key, summary_key, trace_key
from mldiagnostics_diagnosis.summary import HostSummary, Steps

if TYPE_CHECKING:
    from mldiagnostics.store import Store

STEPS = range(100, 108)
STEP_S, SLOW_S = 0.04, 0.02


def put_diagnosed_session(
    store: Store,
    run: str,
    session: str,
    *,
    hosts: int,
    slow: int,
    step_s: float = STEP_S,
    message: str = "rank 2 arrives last",
) -> None:
    """Write a session of a run in which one host arrives `SLOW_S` after the others in each step, in its input."""
    for number in range(hosts):
        own_s = SLOW_S if number == slow else 0.0
        summary = HostSummary(
            host=f"host-{number}",
            trace_bytes=10,
            platform="cpu",
            duration_s=1.0,
            steps=Steps(
                source="annotations",
                total=len(STEPS),
                numbers=tuple(STEPS),
                seconds=(step_s,) * len(STEPS),
                arrivals=(0.01 + own_s,) * len(STEPS),
                waits=(step_s - 0.01 - own_s,) * len(STEPS),
                phases={
                    "input": (own_s,) * len(STEPS),
                    "compute": (0.01,) * len(STEPS),
                    "collective": (step_s - 0.01 - own_s,) * len(STEPS),
                },
            ),
            coverage=1.0,
        )
        store.put(f"{run}/{trace_key(session, summary.host)}", b"x" * 10)
        store.put(f"{run}/{summary_key(session, summary.host)}", summary.encode())
    finding = Finding(
        code="SlowHost",
        severity="critical",
        message=message,
        next_step="Look at the input of this host.",
        hosts=(FindingHost(f"host-{slow}", slow, f"trainer-{slow}", "n7"),),
        host_count=1,
        phase="input",
        cost_s=SLOW_S,
        cost_share=SLOW_S / step_s,
        evidence=(Figure("arrival of this host", 0.03, "s"), Figure("matched steps", len(STEPS), "steps")),
    )
    put_diagnosis(store, run, Diagnosis(session, hosts, len(STEPS), step_s, (finding,)))


def put_diagnosis(store: Store, run: str, diagnosis: Diagnosis) -> None:
    """Write the diagnosis of a session of a run."""
    store.put(f"{run}/{diagnosis_key(diagnosis.session)}", json.dumps(diagnosis.to_json()).encode(), replace=True)
