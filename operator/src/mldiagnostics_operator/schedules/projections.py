"""The parts of schedules, runs and captures that schedules need; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mldiagnostics.capture.model import Reason
from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.names import FINISHED_PHASES, SCHEDULE_LABEL, MLRunPhase
from mldiagnostics_api.schedules.trigger_sample import TriggerSample
from mldiagnostics_api.schedules.triggers import TriggerType
from mldiagnostics_api.v1alpha1.schedule import MLDiagnosticsSchedule, read_schedule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.reports.reported_run import ReportedRun

_SIGNALS = (TriggerType.HANGING, TriggerType.STRAGGLING, TriggerType.GOODPUT_LOW)


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A schedule in the version that was read."""

    body: MLDiagnosticsSchedule
    version: str
    """Its resourceVersion: a write on another version is refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRun:
    """An MLRun that is active."""

    name: str
    run_id: str
    started: float
    labels: Mapping[str, str] = field(default_factory=dict)
    workload: tuple[str, str] = ("", "")
    """Kind and name of its workload."""
    sample: TriggerSample = field(default_factory=TriggerSample)


@dataclass(frozen=True, slots=True, kw_only=True)
class AutomaticCapture:
    """A capture that a schedule made."""

    name: str
    uid: str
    schedule: str
    """Uid of the schedule."""
    ended: float | None
    bytes: int
    has_findings: bool
    is_diagnosing: bool
    output: str = ""
    """Log directory of its session."""
    session: str = ""
    storage_was_full: bool = False
    """Whether a trace of it was not stored for lack of space."""


def stored_schedule(body: Mapping[str, Any]) -> StoredSchedule | None:
    """Return a schedule; None if it is being deleted or cannot be read."""
    try:
        schedule = read_schedule(body)
    except ValueError:
        return None
    if schedule.metadata.deletion_timestamp is not None:
        return None
    return StoredSchedule(schedule, str(body["metadata"].get("resourceVersion", "")))


def active_run(body: Mapping[str, Any]) -> ActiveRun | None:
    """Return a run; None if it is not active."""
    status = body.get("status") or {}
    if status.get("phase") != MLRunPhase.ACTIVE:
        return None
    meta, spec, started = body["metadata"], body.get("spec") or {}, optional_time(status.get("startTime"))
    reference = spec.get("workloadRef") or {}
    return ActiveRun(
        name=meta["name"],
        run_id=status.get("runId") or spec.get("runId") or "",
        started=started.timestamp() if started else 0.0,
        labels=dict(meta.get("labels") or {}),
        workload=(reference.get("kind", ""), reference.get("name", "")),
        sample=_sample(body, status),
    )


def automatic_capture(body: Mapping[str, Any]) -> AutomaticCapture | None:
    """Return a capture with its schedule; None without one."""
    meta, status = body["metadata"], body.get("status") or {}
    schedule = (meta.get("labels") or {}).get(SCHEDULE_LABEL)
    if not schedule:
        return None
    completed = optional_time(status.get("completionTime"))
    diagnosis = status.get("diagnosis") or {}
    is_finished = status.get("phase") in FINISHED_PHASES
    return AutomaticCapture(
        name=meta["name"],
        uid=meta["uid"],
        schedule=schedule,
        ended=completed.timestamp() if completed and is_finished else None,
        bytes=status.get("bytes") or 0,
        has_findings=bool(diagnosis.get("critical") or diagnosis.get("warnings")),
        is_diagnosing=diagnosis.get("state") == "Pending",
        output=(status.get("captureResult") or {}).get("outputLocation") or "",
        session=status.get("sessionId") or "",
        storage_was_full=any(
            each.get("reason") == Reason.STORE_FULL
            for each in (*(status.get("results") or ()), *(status.get("conditions") or ()))
        ),
    )


def current_sample(run: ActiveRun, reported: ReportedRun | None) -> TriggerSample:
    """Return the facts of a run for triggers.

    Its reports are newer than its status.
    """
    sample = run.sample
    if reported is None:
        return sample
    account = reported.goodput
    return TriggerSample(
        attempt=max(sample.attempt, reported.attempt),
        step=reported.step,
        step_time_s=reported.step_time_seconds,
        host_step_times={
            host.pod or host.name: host.step_time_seconds for host in reported.hosts if host.step_time_seconds
        },
        signals=sample.signals,
        goodput=account.goodput if account else sample.goodput,
        elapsed_s=account.elapsed if account else sample.elapsed_s,
        unproductive_s=account.unproductive if account else sample.unproductive_s,
    )


def _sample(body: Mapping[str, Any], status: Mapping[str, Any]) -> TriggerSample:
    progress, goodput = status.get("progress") or {}, status.get("goodput") or {}
    raised = {str(kind): condition_of(body, kind) for kind in _SIGNALS}
    return TriggerSample(
        attempt=status.get("attempt") or 0,
        step=progress.get("step"),
        step_time_s=progress.get("stepTimeSeconds"),
        signals={kind: each.message or kind for kind, each in raised.items() if each is not None and each.holds},
        goodput=goodput.get("ratio"),
        elapsed_s=goodput.get("elapsedSeconds") or 0.0,
        unproductive_s=dict(goodput.get("unproductiveSeconds") or {}),
    )
