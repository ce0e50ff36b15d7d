"""The next status of a run: workload and reports, then pods, signals and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_api.conditions import true_since
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.names import RunConditionType
from mldiagnostics_api.run_observation import cause_messages, observed
from mldiagnostics_api.run_sessions import with_sessions
from mldiagnostics_api.run_signals import signal_messages, signalled
from mldiagnostics_api.run_status import RunEvent, events_between, fold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mldiagnostics_api.run_status import RunFacts
    from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession

    from mldiagnostics_operator.runs.observer import RunObserver
    from mldiagnostics_operator.runs.run import Run


def next_status(
    run: Run, facts: RunFacts, observer: RunObserver, sessions: Sequence[RunSession], now: datetime
) -> MLRunStatus:
    """Return the status of a run, and keep the state of its signals.

    Args:
        run: The run.
        facts: Workload and reports.
        observer: Knows the pods of the run.
        sessions: Sessions of captures of the run.
        now: Current time.
    """
    status = fold(run.status, facts, now)
    state, metadata = facts.lifecycle, run.observed.metadata if run.observed else {}
    created = optional_time(metadata.get("creationTimestamp"))
    body = status.model_dump(mode="json", by_alias=True, include={"conditions"})
    seen = observer.observe(
        run.pods_key,
        status.attempt or 0,
        created=created,
        admitted=true_since({"status": body}, RunConditionType.ADMITTED) if state and state.queue else created,
        expected=state.hosts if state else None,
    )
    status = observed(status, seen, facts.reported, now)
    status, run.signals = signalled(status, run.signals, facts.reported, run.limits, now)
    return with_sessions(status, (*sessions, *run.adopted))


def run_events(before: MLRunStatus, after: MLRunStatus) -> tuple[RunEvent, ...]:
    """Return the events that lead from one status to the next, in their order."""
    causes = (RunEvent("Disrupted", message, warning=True) for message in cause_messages(before, after))
    signals = (RunEvent(kind, message, warning=warning) for kind, message, warning in signal_messages(before, after))
    return (*causes, *signals, *events_between(before, after))
