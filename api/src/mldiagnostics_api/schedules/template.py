"""A schedule object as rules that decide, and the objects of its captures."""

from collections.abc import Mapping
from typing import Any, Final

from mldiagnostics_api.names import CAPTURE_REASON_ANNOTATION, SCHEDULE_LABEL, TRIGGER_LABEL
from mldiagnostics_api.resources import CONNECTIONS, SCHEDULES
from mldiagnostics_api.schedules.budget import PULSES_PER_CAPTURE, BudgetLimits
from mldiagnostics_api.schedules.decision import ScheduleRules, WantedCapture
from mldiagnostics_api.schedules.timing import Cron, Every, Timing, parse_period
from mldiagnostics_api.schedules.triggers import TriggerRule
from mldiagnostics_api.v1alpha1.schedule import (
    MAX_CAPTURES,
    MLDiagnosticsSchedule,
    ScheduleBudget,
    ScheduleTiming,
    ScheduleTrigger,
)

CAPTURES_PER_RUN: Final = 8
CAPTURES: Final = 50
INTERVAL_S: Final = 300
COOL_DOWN_S: Final = 3600
SLOT: Final = "Slot"
"""Value of the trigger's label for captures of slots."""
_SELECTION: Final = frozenset({"ranks", "slices", "replicatedJob", "container", "limit"})
"""Fields of the template that are of `target` in the capture."""


def rules_of(schedule: MLDiagnosticsSchedule) -> ScheduleRules:
    """Return the rules of a schedule, with its defaults.

    Raises:
        ValueError: Its times are not valid.
    """
    spec, meta = schedule.spec, schedule.metadata
    makes_pulses = bool(spec.capture and spec.capture.pulse)
    created = meta.creation_timestamp.timestamp() if meta.creation_timestamp else 0.0
    return ScheduleRules(
        name=meta.name,
        uid=meta.uid,
        timing=_timing(spec.schedule, created) if spec.schedule else None,
        jitter_s=float((spec.schedule and spec.schedule.jitter_seconds) or 0),
        triggers=tuple(_trigger(each) for each in spec.triggers or ()),
        limits=_limits(spec.budget or ScheduleBudget(), makes_pulses=makes_pulses),
        makes_pulses=makes_pulses,
    )


def summary(schedule: MLDiagnosticsSchedule) -> str:
    """Return times and triggers for people, for example `every 6h, StepTimeRise`."""
    timing = schedule.spec.schedule
    parts = [str(each.type) for each in schedule.spec.triggers or ()]
    if timing is not None:
        parts.insert(0, f"every {timing.every}" if timing.every else f"{timing.cron} {timing.time_zone or 'UTC'}")
    return ", ".join(parts)[:256]


def capture_body(schedule: MLDiagnosticsSchedule, wanted: WantedCapture) -> dict[str, Any]:
    """Return the object of a capture; its target is the name of an MLRun."""
    meta = schedule.metadata
    template = schedule.spec.capture
    fields = template.model_dump(mode="json", by_alias=True, exclude_none=True) if template else {}
    selection = {key: value for key, value in fields.items() if key in _SELECTION}
    trigger = {key: value for key, value in fields.items() if key not in _SELECTION}
    return {
        "apiVersion": CONNECTIONS.api_version,
        "kind": CONNECTIONS.kind,
        "metadata": {
            "name": wanted.name,
            "namespace": meta.namespace,
            "labels": {SCHEDULE_LABEL: meta.uid, TRIGGER_LABEL: wanted.firing.type if wanted.firing else SLOT},
            "annotations": {CAPTURE_REASON_ANNOTATION: wanted.message},
            "ownerReferences": [
                {
                    "apiVersion": SCHEDULES.api_version,
                    "kind": SCHEDULES.kind,
                    "name": meta.name,
                    "uid": meta.uid,
                    "controller": True,
                }
            ],
        },
        "spec": {"triggerCapture": {"target": {"runRef": {"name": wanted.target}, **selection}, **trigger}},
    }


def applies(schedule: MLDiagnosticsSchedule, name: str, labels: Mapping[str, str], workload: tuple[str, str]) -> bool:
    """Return whether a schedule applies to a run of its namespace.

    Args:
        schedule: The schedule.
        name: Name of the MLRun.
        labels: Its labels.
        workload: Kind and name of its workload.
    """
    target = schedule.spec.target
    if target is None:
        return True
    if target.run_ref is not None:
        return target.run_ref.name == name
    if target.workload_ref is not None:
        return (target.workload_ref.kind, target.workload_ref.name) == workload
    return (target.match_labels or {}).items() <= labels.items()


def _timing(timing: ScheduleTiming, created: float) -> Timing:
    if timing.every:
        return Every(parse_period(timing.every), created)
    return Cron.parse(timing.cron or "", timing.time_zone or "UTC")


def _trigger(trigger: ScheduleTrigger) -> TriggerRule:
    return TriggerRule(
        type=trigger.type,
        threshold=None if trigger.threshold_percent is None else trigger.threshold_percent / 100,
        settle_s=trigger.settle_seconds,
        cool_down_s=COOL_DOWN_S if trigger.cool_down_seconds is None else trigger.cool_down_seconds,
    )


def captures_per_run(*, makes_pulses: bool) -> int:
    """Return the default budget of one run in 24 hours; more pulses than captures."""
    return CAPTURES_PER_RUN * (PULSES_PER_CAPTURE if makes_pulses else 1)


def _limits(budget: ScheduleBudget, *, makes_pulses: bool) -> BudgetLimits:
    per_run, captures = captures_per_run(makes_pulses=makes_pulses), MAX_CAPTURES if makes_pulses else CAPTURES
    return BudgetLimits(
        captures_per_run=per_run if budget.captures_per_run is None else budget.captures_per_run,
        captures=captures if budget.captures is None else budget.captures,
        bytes=budget.bytes,
        interval_s=INTERVAL_S if budget.minimum_interval_seconds is None else budget.minimum_interval_seconds,
    )
