"""Observations of a run that only the cluster has: start-up, causes, reliability."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from mldiagnostics.goodput import reliability

from mldiagnostics_api.disruptions import DisruptionCause, Evidence, decide
from mldiagnostics_api.disruptions.decision import WINDOW
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.reported import ReportedRun
from mldiagnostics_api.run_reports import moment
from mldiagnostics_api.startup import PodStartup, StartupTimeline, pods_startup, waiting_message
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt, RunGoodput, RunStartUp

_PLANNED: Final = frozenset({DisruptionCause.SUSPENDED})
"""Causes that are not failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunObservation:
    """The pods of a run, and the evidence of disruptions."""

    created: datetime | None = None
    """Creation of the workload."""
    admitted: datetime | None = None
    """Admission of the current attempt by its queue; of a workload without one, its creation."""
    pods: Sequence[PodStartup] = ()
    """The pods of the current attempt."""
    expected: int | None = None
    """Number of pods that the workload needs."""
    evidence: Sequence[Evidence] = ()


def observed(status: MLRunStatus, seen: RunObservation, reported: ReportedRun | None, now: datetime) -> MLRunStatus:
    """Return a status with the start-up and the cause of each attempt.

    Milestones and causes that are known stay although pods and events are gone; a cause may change until the evidence
    is complete.

    Args:
        status: Status of the run, as folded from workload and reports.
        seen: Pods and evidence.
        reported: Reports of the run.
        now: Current time.
    """
    attempts = [_caused(attempt, seen.evidence, status.phase, now) for attempt in status.attempts or ()]
    if attempts and attempts[-1].end_time is None:
        previous_end = attempts[-2].end_time if len(attempts) > 1 else None
        attempts[-1] = _started(attempts[-1], seen, reported, previous_end)
    changes: dict[str, object] = {
        "attempts": attempts or None,
        "goodput": _reliability(status, attempts, seen, reported),
    }
    if status.phase is MLRunPhase.PENDING and status.reason == "Starting" and seen.pods:
        changes["message"] = waiting_message(seen.pods, expected=seen.expected) or status.message
    return status.model_copy(update=changes)


def cause_messages(before: MLRunStatus, after: MLRunStatus) -> Iterable[str]:
    """Return a message for each attempt whose cause is new."""
    known = {attempt.attempt: attempt.cause for attempt in before.attempts or ()}
    for attempt in after.attempts or ():
        if attempt.cause and attempt.cause != known.get(attempt.attempt) and attempt.cause != DisruptionCause.UNKNOWN:
            yield f"attempt {attempt.attempt} ended, {attempt.cause}: {attempt.cause_message}"


def _caused(attempt: RunAttempt, evidence: Sequence[Evidence], phase: MLRunPhase | None, now: datetime) -> RunAttempt:
    ended = attempt.end_time
    if ended is None or (now > ended + WINDOW and attempt.cause):
        return attempt
    if attempt.reason == MLRunPhase.COMPLETED or (phase is MLRunPhase.COMPLETED and attempt.cause is None):
        return attempt
    verdict = decide([item for item in evidence if item.time <= ended + WINDOW], ended=ended)
    if verdict.cause is DisruptionCause.UNKNOWN and attempt.cause:
        return attempt
    return attempt.model_copy(update={"cause": str(verdict.cause), "cause_message": verdict.message[:1024]})


def _started(
    attempt: RunAttempt, seen: RunObservation, reported: ReportedRun | None, previous_end: datetime | None
) -> RunAttempt:
    timeline = _timeline(attempt.start_up).merged(
        StartupTimeline(
            created=previous_end or seen.created,
            admitted=seen.admitted,
            first_step=_first_step(reported, attempt.attempt),
        )
    )
    timeline = timeline.merged(pods_startup(seen.pods, expected=seen.expected))
    milestones = {f"{each.name}_time": getattr(timeline, each.name) for each in fields(StartupTimeline)}
    if not any(milestones.values()):
        return attempt
    return attempt.model_copy(update={"start_up": RunStartUp.model_validate(milestones)})


def _timeline(start_up: RunStartUp | None) -> StartupTimeline:
    known = start_up or RunStartUp()
    return StartupTimeline(**{each.name: getattr(known, f"{each.name}_time") for each in fields(StartupTimeline)})


def _first_step(reported: ReportedRun | None, attempt: int) -> datetime | None:
    """Return the first change of a step that is reported, by the operator's clock."""
    hosts = [host for host in reported.hosts if host.attempt == attempt] if reported else []
    steps = [host.changed - host.clock_ahead for host in hosts if host.changed is not None and host.step is not None]
    return moment(min(steps, default=None))


def _reliability(
    status: MLRunStatus, attempts: Sequence[RunAttempt], seen: RunObservation, reported: ReportedRun | None
) -> RunGoodput | None:
    """Return the account of the goodput with start-up, ETTR, MTTR and MTTF."""
    stages: dict[str, float] = {}
    recoveries: list[float] = []
    for attempt in attempts:
        timeline = _timeline(attempt.start_up)
        if timeline.created is None or timeline.first_step is None:
            continue
        for stage, seconds in timeline.durations(timeline.first_step).items():
            stages[str(stage)] = stages.get(str(stage), 0.0) + seconds
        if attempt.attempt > 0:
            recoveries.append(max(0.0, (timeline.first_step - timeline.created).total_seconds()))
    account = reported.goodput if reported else None
    if not stages and account is None:
        return status.goodput
    planned = sum(attempt.cause in _PLANNED for attempt in attempts)
    failures = max(0, (status.attempt or 0) - planned)
    ettr = mttf_s = None
    if account is not None:
        created_s = min(seen.created.timestamp(), account.started) if seen.created else account.started
        ettr = reliability.ettr(account.productive, account.as_of - created_s)
        mttf_s = reliability.mean_time_to_failure(max(0.0, account.elapsed - sum(recoveries)), failures)
    update = {
        "start_up_seconds": stages or None,
        "mttr_seconds": round(sum(recoveries) / len(recoveries), 3) if recoveries else None,
        "mttf_seconds": None if mttf_s is None else round(mttf_s, 3),
        "ettr": None if ettr is None else round(min(max(ettr, 0.0), 1.0), 4),
    }
    return (status.goodput or RunGoodput()).model_copy(update=update)
