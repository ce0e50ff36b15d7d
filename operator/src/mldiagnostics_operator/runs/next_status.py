"""The next status of a run: workload and reports, then pods, signals and sessions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics_api.conditions import true_since
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.names import RunConditionType
from mldiagnostics_api.queueing import queued
from mldiagnostics_api.run_observation import cause_messages, observed
from mldiagnostics_api.run_sessions import session_messages, with_sessions
from mldiagnostics_api.run_signals import signal_messages, signalled
from mldiagnostics_api.run_status import RunEvent, events_between, fold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mldiagnostics_api.queueing import QueueVerdict
    from mldiagnostics_api.run_status import RunFacts
    from mldiagnostics_api.v1alpha1 import MLRunStatus, RunSession

    from mldiagnostics_operator.runs.observer import RunObserver
    from mldiagnostics_operator.runs.run import Run


def next_status(
    run: Run,
    facts: RunFacts,
    observer: RunObserver,
    *,
    queue: QueueVerdict | None,
    sessions: Sequence[RunSession],
    now: datetime,
    view_url: str = "",
) -> MLRunStatus:
    """Return the status of a run, and keep the state of its signals.

    Args:
        run: The run.
        facts: Workload and reports.
        observer: Knows the pods of the run.
        queue: Kueue's verdict about the workload; None if none is known.
        sessions: Sessions of captures of the run.
        now: Current time.
        view_url: URL of the web view; empty without one.
    """
    state = queued(facts.lifecycle, queue) if facts.lifecycle else None
    status = fold(run.status, replace(facts, lifecycle=state), now)
    metadata = run.observed.metadata if run.observed else {}
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
    status = with_sessions(status, (*sessions, *run.adopted))
    return status.model_copy(update={"url": f"{view_url}/{run.run_id}"}) if view_url and run.run_id else status


def run_events(before: MLRunStatus, after: MLRunStatus) -> tuple[RunEvent, ...]:
    """Return the events that lead from one status to the next, in their order."""
    causes = (RunEvent("Disrupted", message, warning=True) for message in cause_messages(before, after))
    signals = (RunEvent(kind, message, warning=warning) for kind, message, warning in signal_messages(before, after))
    sessions = (RunEvent(kind, message, warning=warning) for kind, message, warning in session_messages(before, after))
    return (*causes, *signals, *sessions, *events_between(before, after))
