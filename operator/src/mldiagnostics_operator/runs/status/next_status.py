"""Decide the next status of a run; pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics_api.conditions import true_since
from mldiagnostics_api.lifecycle.queueing import queued
from mldiagnostics_api.names import RunConditionType
from mldiagnostics_api.runs.attempts import controller_attempt
from mldiagnostics_api.runs.events import RunEvent, events_between
from mldiagnostics_api.runs.findings import slow_verdict, with_findings
from mldiagnostics_api.runs.observation import RunObservation, cause_messages, observed
from mldiagnostics_api.runs.reported_parts import without_pods
from mldiagnostics_api.runs.sessions import session_messages, with_sessions
from mldiagnostics_api.runs.signal_conditions import signal_messages, signalled
from mldiagnostics_api.runs.signals import SignalThresholds
from mldiagnostics_api.runs.status import fold

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from mldiagnostics_api.disruptions import Evidence
    from mldiagnostics_api.lifecycle.queueing import QueueVerdict
    from mldiagnostics_api.runs.facts import RunFacts
    from mldiagnostics_api.runs.signal_conditions import SignalStates
    from mldiagnostics_api.v1alpha1 import MLRunStatus, RunFinding, RunSession

    from mldiagnostics_operator.runs.watches.run_pods import PodsOfRun


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """Everything that decides the status of a run, at one moment."""

    facts: RunFacts
    """Workload and reports."""
    created: datetime | None = None
    """Creation of the workload."""
    queue: QueueVerdict | None = None
    """Kueue's verdict about the workload; None if none is known."""
    pods: PodsOfRun | None = None
    """None if none was seen."""
    refused: Evidence | None = None
    """The newest refusal to create pods of the workload."""
    sessions: Sequence[RunSession] = ()
    """Sessions of captures, then those in the storage of the run."""
    findings: Sequence[RunFinding] = ()
    """Findings of its newest diagnosed capture; empty if none is known here."""
    signals: SignalStates = field(default_factory=dict)
    """Signals after the status before."""
    limits: SignalThresholds = field(default_factory=SignalThresholds)
    url: str = ""
    """Page of the run in the web view; empty without one."""


class NextStatus(NamedTuple):
    """A status, and the signals that belong to it."""

    status: MLRunStatus
    signals: SignalStates


def next_status(previous: MLRunStatus, inputs: RunInputs, now: datetime) -> NextStatus:
    """Return the status of a run.

    Args:
        previous: The status of the object.
        inputs: Workload, queue, reports, pods and sessions as they are now.
        now: Current time.
    """
    known = inputs.facts.lifecycle
    state = queued(known, inputs.queue) if known else None
    facts = _facts(previous, replace(inputs.facts, lifecycle=state), inputs.pods)
    status = fold(previous, facts, now)
    status = observed(status, _observation(status, facts, inputs), facts.reported, now)
    status = with_findings(status, inputs.findings)
    slow = slow_verdict(status)
    status, signals = signalled(status, inputs.signals, facts.reported, inputs.limits, now, slow=slow)
    status = with_sessions(status, inputs.sessions)
    if inputs.url:
        status = status.model_copy(update={"url": inputs.url})
    return NextStatus(status, signals)


def run_events(before: MLRunStatus, after: MLRunStatus) -> tuple[RunEvent, ...]:
    """Return the events that lead from one status to the next, in their order."""
    causes = (RunEvent("Disrupted", message, warning=True) for message in cause_messages(before, after))
    signals = (RunEvent(kind, message, warning=warning) for kind, message, warning in signal_messages(before, after))
    sessions = (RunEvent(kind, message, warning=warning) for kind, message, warning in session_messages(before, after))
    return (*causes, *signals, *sessions, *events_between(before, after))


def _facts(previous: MLRunStatus, facts: RunFacts, pods: PodsOfRun | None) -> RunFacts:
    """Return the facts with those that the pods show."""
    if pods is None:
        return facts.without_account()
    number = max(controller_attempt(previous), facts.lifecycle.attempt if facts.lifecycle else 0)
    facts = replace(facts, reported=facts.reported and without_pods(facts.reported, pods.gone))
    return replace(
        facts.without_account(),
        program=pods.leading(number, hosts=facts.lifecycle.hosts if facts.lifecycle else None),
        crashing=pods.crashing(number),
        restarts=pods.restarts,
    )


def _observation(status: MLRunStatus, facts: RunFacts, inputs: RunInputs) -> RunObservation:
    """Return the pods of the current attempt, with all that explains them."""
    attempt, pods, state = controller_attempt(status), inputs.pods, facts.lifecycle
    pulls = pods.pulls_of(attempt) if pods else ()
    admitted = inputs.created
    if state and state.queue:
        conditions = status.model_dump(mode="json", by_alias=True, include={"conditions"})
        admitted = true_since({"status": conditions}, RunConditionType.ADMITTED)
    return RunObservation(
        created=inputs.created,
        admitted=admitted,
        expected=state.hosts if state else None,
        pods=pods.of_attempt(attempt) if pods else (),
        pulled=max((time for time in pulls if time), default=None),
        are_pulls_open=not pulls,
        refused=inputs.refused,
        evidence=tuple(pods.evidence.values()) if pods else (),
        program=facts.program,
    )
