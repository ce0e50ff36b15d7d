"""Observations of a run that only the cluster has: start-up, causes, reliability."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics.text.counts import counted_of

from mldiagnostics_api.disruptions import DisruptionCause, Evidence, decide
from mldiagnostics_api.disruptions.decision import WINDOW
from mldiagnostics_api.formats import EPOCH
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.lifecycle.startup import (
    PodStartup,
    StartupStage,
    StartupTimeline,
    pods_startup,
    waiting_message,
)
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase, RunConditionType
from mldiagnostics_api.reports.reported_run import ReportedRun
from mldiagnostics_api.runs.attempts import HELD_BACK
from mldiagnostics_api.runs.events import QUOTA_EXCEEDED
from mldiagnostics_api.runs.phase import DELETED
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt, RunGoodput, RunStartUp

REFUSAL_LASTS: Final = timedelta(minutes=20)
"""A controller tries again to create its pods after at most 1000 s, and records the refusal again."""


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
    pulled: datetime | None = None
    """When the last image was present, by events of the pods; None without such events."""
    are_pulls_open: bool = False
    """Whether these events are still to be read."""
    refused: Evidence | None = None
    """The newest refusal to create pods of the workload."""
    evidence: Sequence[Evidence] = ()
    program: PodProgram | None = None
    """The container of the pod that leads."""


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
    known = status.attempts or ()
    ends = [None, *(attempt.end_time for attempt in known)]
    attempts = [
        _caused(
            attempt,
            _evidence(attempt, following, seen, previous_end=previous_end),
            status,
            now,
            last=following is None,
        )
        for attempt, following, previous_end in zip(known, [*known[1:], None], ends, strict=False)
    ]
    if attempts and attempts[-1].end_time is None and not status.independent:
        attempts[-1] = _started(attempts[-1], seen, reported, ends[-2])
    refused = _current_refusal(status, attempts, seen, now)
    refusal = {} if refused is None else _refusal_changes(status, refused, seen)
    changes: dict[str, object] = {"attempts": attempts or None, "goodput": _with_start_ups(status, attempts)}
    if status.phase is MLRunPhase.PENDING and status.reason == "Starting" and seen.pods:
        changes["message"] = waiting_message(seen.pods, expected=seen.expected) or status.message
    return status.model_copy(update=changes | refusal)


def cause_messages(before: MLRunStatus, after: MLRunStatus) -> Iterable[str]:
    """Return a message for each attempt whose cause is new."""
    known = {(attempt.attempt, attempt.start_time): attempt.cause for attempt in before.attempts or ()}
    for attempt in after.attempts or ():
        earlier = known.get((attempt.attempt, attempt.start_time))
        if attempt.cause and attempt.cause not in (earlier, DisruptionCause.UNKNOWN):
            yield f"attempt {attempt.attempt} ended, {attempt.cause}: {attempt.cause_message}"


def _current_refusal(
    status: MLRunStatus, attempts: Sequence[RunAttempt], seen: RunObservation, now: datetime
) -> Evidence | None:
    """Return the refusal that keeps the current attempt waiting, or None."""
    refused = seen.refused
    if refused is None or status.phase in FINISHED_RUN_PHASES or status.reason in HELD_BACK:
        return None
    if now - refused.time > REFUSAL_LASTS or len(seen.pods) >= (seen.expected or 1):
        return None
    before = attempts
    if attempts and attempts[-1].end_time is None:
        if _have_started(attempts[-1]):
            return None
        before = attempts[:-1]
    since = before[-1].end_time if before else seen.created
    return refused if since is None or refused.time >= since else None


def _refusal_changes(status: MLRunStatus, refused: Evidence, seen: RunObservation) -> dict[str, object]:
    created = len(seen.pods)
    pods = f"{created} of all pods" if seen.expected is None else counted_of(created, seen.expected, "pod")
    message = f"{pods} created; {refused.subject}: {refused.detail}"
    explained = {"reason": QUOTA_EXCEEDED, "message": message}
    conditions = [
        each.model_copy(update=explained) if each.type == RunConditionType.STARTED and each.status != "True" else each
        for each in status.conditions or ()
    ]
    return {**explained, "conditions": conditions}


def _evidence(
    attempt: RunAttempt, following: RunAttempt | None, seen: RunObservation, *, previous_end: datetime | None
) -> Sequence[Evidence]:
    """Return the evidence that can explain the end of an attempt.

    It is later than the end of the attempt before, or both ended in the same second, the kubelet's unit, and not of the
    attempt that follows in the same pod. Refused pods explain only an attempt that never had all of its pods: at a
    restart, the pods of the attempt before still count against the quota.
    """
    refused, ended = seen.refused, attempt.end_time
    own = [item for item in seen.evidence if previous_end is None or item.time > previous_end or item.time == ended]
    if following is not None and following.container_restarts and ended is not None:
        own = [item for item in own if item.time <= ended]
    if refused is None or ended is None or refused.time > ended or _have_started(attempt):
        return own
    return (*own, refused)


def _have_started(attempt: RunAttempt) -> bool:
    """Return whether all pods of an attempt have started."""
    return attempt.start_up is not None and attempt.start_up.started_time is not None


def _caused(
    attempt: RunAttempt, evidence: Sequence[Evidence], status: MLRunStatus, now: datetime, *, last: bool
) -> RunAttempt:
    ended, is_done = attempt.end_time, last and status.phase is MLRunPhase.COMPLETED
    if ended is None or (now - ended > WINDOW and attempt.cause):
        return attempt
    if attempt.reason == MLRunPhase.COMPLETED or (is_done and attempt.cause is None):
        return attempt
    if attempt.reason in HELD_BACK:
        held = f"{attempt.reason}: {attempt.message or ''}"
        subject = status.workload or "the workload"
        evidence = (*evidence, Evidence(cause=DisruptionCause.SUSPENDED, time=ended, subject=subject, detail=held))
    if attempt.reason == DELETED and not evidence:
        subject = status.workload or "the workload"
        detail = "was deleted; the API does not record by which user"
        evidence = [Evidence(cause=DisruptionCause.DELETED, time=ended, subject=subject, detail=detail)]
    verdict = decide([item for item in evidence if item.time - ended <= WINDOW], ended=ended)
    if verdict.cause is DisruptionCause.UNKNOWN and attempt.cause:
        return attempt
    return attempt.model_copy(update={"cause": str(verdict.cause), "cause_message": verdict.message[:1024]})


def _started(
    attempt: RunAttempt, seen: RunObservation, reported: ReportedRun | None, previous_end: datetime | None
) -> RunAttempt:
    timeline = start_up_timeline(attempt.start_up).merged(
        StartupTimeline(created=previous_end or seen.created, admitted=seen.admitted)
    )
    if attempt.container_restarts and previous_end is not None:
        started = seen.program.started if seen.program else None
        timeline = timeline.merged(StartupTimeline(scheduled=previous_end, pulled=previous_end, started=started))
    else:
        timeline = timeline.merged(_pods_startup(seen))
    timeline = timeline.merged(StartupTimeline(first_step=_first_step(reported, seen, timeline, previous_end)))
    milestones = {f"{each.name}_time": getattr(timeline, each.name) for each in fields(StartupTimeline)}
    if not any(milestones.values()):
        return attempt
    return attempt.model_copy(update={"start_up": RunStartUp.model_validate(milestones)})


def _pods_startup(seen: RunObservation) -> StartupTimeline:
    """Return the milestones of the pods, with the time of the pull from their events.

    A milestone never changes, so the pull stays open until the events are read.
    """
    timeline = pods_startup(seen.pods, expected=seen.expected)
    if timeline.started is None or seen.are_pulls_open:
        return replace(timeline, pulled=None)
    return timeline if seen.pulled is None else replace(timeline, pulled=min(seen.pulled, timeline.started))


def start_up_timeline(start_up: RunStartUp | None) -> StartupTimeline:
    """Return the start-up of an attempt in a status as a timeline."""
    known = start_up or RunStartUp()
    return StartupTimeline(**{each.name: getattr(known, f"{each.name}_time") for each in fields(StartupTimeline)})


def start_up_seconds(attempt: RunAttempt) -> dict[str, float]:
    """Return the seconds of a start-up by stage; empty if it is not known or goes on.

    It ends with the first step, else with the attempt.
    """
    timeline = start_up_timeline(attempt.start_up)
    until = timeline.first_step or attempt.end_time
    return {str(stage): seconds for stage, seconds in timeline.durations(until).items()} if until else {}


def _first_step(
    reported: ReportedRun | None, seen: RunObservation, timeline: StartupTimeline, previous_end: datetime | None
) -> datetime | None:
    """Return the first change of a step that is reported, by the operator's clock.

    Processes of the attempt before may report longer than it lasts: the steps of an attempt are made in its pods, after
    their containers have started.
    """
    uids = {pod.uid for pod in seen.pods if pod.uid}
    hosts = [host for host in reported.hosts if not uids or host.pod_uid in uids] if reported else []
    if uids and timeline.started is None:
        return None
    earliest = max(filter(None, (previous_end, timeline.scheduled, timeline.started)), default=EPOCH)
    steps = (host.changed_time for host in hosts)
    return min((step for step in steps if step is not None and step >= earliest), default=None)


def _with_start_ups(status: MLRunStatus, attempts: Sequence[RunAttempt]) -> RunGoodput | None:
    """Return the account of the goodput with the start-ups of all attempts."""
    known = [stages for attempt in attempts if (stages := start_up_seconds(attempt))]
    if not known:
        return status.goodput
    sums = {str(stage): sum(each.get(str(stage), 0.0) for each in known) for stage in StartupStage}
    return (status.goodput or RunGoodput()).model_copy(update={"start_up_seconds": sums})
