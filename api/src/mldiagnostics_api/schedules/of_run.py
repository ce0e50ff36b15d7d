"""The schedules that apply to one run, as surfaces show them; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.formats import format_time
from mldiagnostics_api.names import ScheduleConditionType
from mldiagnostics_api.schedules.template import applies
from mldiagnostics_api.v1alpha1.schedule import (
    MLDiagnosticsSchedule,
    ScheduledCapture,
    ScheduleRefusal,
    ScheduleStatus,
    read_schedule,
)

MAX_SHOWN_CAPTURES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleOfRun:
    """A schedule and its captures of one run."""

    name: str
    times: str
    """Times and triggers for people."""
    next_capture: str | None
    """RFC 3339."""
    is_ready: bool
    message: str
    """When the next slot is, or why it makes no captures."""
    captures: Sequence[ScheduledCapture]
    """Of the last 24 hours, the oldest first; at most `MAX_SHOWN_CAPTURES`."""
    refusals: Sequence[ScheduleRefusal]
    """Refused captures of all runs, by limit."""

    def to_json(self) -> dict[str, Any]:
        """Return the schedule as JSON; the names are those of the object."""
        return {
            "name": self.name,
            "schedule": self.times,
            "nextCaptureTime": self.next_capture,
            "ready": self.is_ready,
            "message": self.message,
            "captures": [_json(each) for each in self.captures],
            "refusals": [_json(each) for each in self.refusals],
        }


def schedules_of(run: Mapping[str, Any], bodies: Iterable[Mapping[str, Any]]) -> list[ScheduleOfRun]:
    """Return the schedules that apply to a run, by name.

    Args:
        run: The MLRun as the API returns it.
        bodies: The schedules of its namespace; those that cannot be read are left out.
    """
    metadata, reference = run["metadata"], (run.get("spec") or {}).get("workloadRef") or {}
    labels = metadata.get("labels") or {}
    workload = (reference.get("kind", ""), reference.get("name", ""))
    return sorted(
        (
            _of_run(schedule, body, metadata["name"])
            for schedule, body in _readable(bodies)
            if applies(schedule, metadata["name"], labels, workload)
        ),
        key=lambda each: each.name,
    )


def _readable(bodies: Iterable[Mapping[str, Any]]) -> Iterable[tuple[MLDiagnosticsSchedule, Mapping[str, Any]]]:
    for body in bodies:
        try:
            yield read_schedule(body), body
        except ValueError:
            continue


def _of_run(schedule: MLDiagnosticsSchedule, body: Mapping[str, Any], run: str) -> ScheduleOfRun:
    status, ready = schedule.status or ScheduleStatus(), condition_of(body, ScheduleConditionType.READY)
    captures = [each for each in status.captures or () if each.run == run]
    return ScheduleOfRun(
        name=schedule.metadata.name,
        times=status.schedule or "",
        next_capture=format_time(status.next_capture_time) if status.next_capture_time else None,
        is_ready=ready is not None and ready.holds,
        message=ready.message if ready else "no operator has read it yet",
        captures=captures[-MAX_SHOWN_CAPTURES:],
        refusals=status.refusals or (),
    )


def _json(part: ScheduledCapture | ScheduleRefusal) -> dict[str, Any]:
    return part.model_dump(mode="json", by_alias=True, exclude_none=True)
