"""The kind `MLDiagnosticsSchedule` v1alpha1: captures by time and by trigger.

The CustomResourceDefinition and its reference page are generated from these models. The status is also the record of
the operator: a capture is written into it before its object is created, so that a new leader makes none twice.
"""

from functools import partial
from typing import Annotated, Final, Literal

from mldiagnostics.capture.model import Delivery, Recording
from pydantic import ConfigDict, Field

from mldiagnostics_api.schedules.budget import BudgetReason
from mldiagnostics_api.schedules.timing import LONGEST_CRON, PERIOD_PATTERN
from mldiagnostics_api.schedules.triggers import TriggerType
from mldiagnostics_api.v1alpha1.shared import (
    ATOMIC,
    INT32,
    RECORDING_RULES,
    Bytes,
    Conditions,
    Count,
    DaySeconds,
    Generation,
    LabelValue,
    MinimumCaptured,
    Model,
    NameRef,
    ObjectMeta,
    ObjectName,
    Port,
    PositionRanges,
    Positive,
    Time,
    TracerLevels,
    WorkloadRef,
    cel_rule,
    cel_rules,
    keyed_by,
    read_object,
)

MAX_CAPTURES: Final = 500
"""Captures of the last 24 hours that a status records, and so the highest budget of a schedule."""
MAX_TRIGGERS: Final = 8


class ScheduleTarget(Model):
    """Runs of this namespace; those that start later are included."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "[has(self.runRef), has(self.workloadRef), has(self.matchLabels)].filter(given, given).size() <= 1",
                "set at most one of runRef, workloadRef and matchLabels",
            )
        )
    )

    run_ref: NameRef | None = None
    """One run (MLRun)."""
    workload_ref: WorkloadRef | None = None
    """Runs of this workload, also if it is deleted and created again."""
    match_labels: Annotated[dict[str, LabelValue], Field(max_length=64)] | None = None
    """Labels that an MLRun must have, for example `diagon.gke.io/run-group`."""


class ScheduleTiming(Model):
    """Times of captures: a fixed period, or cron."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule("has(self.every) != has(self.cron)", "set exactly one of every and cron"),
            cel_rule("!has(self.timeZone) || has(self.cron)", "timeZone needs cron", field=".timeZone"),
        )
    )

    every: Annotated[str, Field(pattern=PERIOD_PATTERN)] | None = None
    """Period such as `10m`, `6h` or `1d`, at least 60s, counted from the creation of this object."""
    cron: Annotated[str, Field(min_length=9, max_length=LONGEST_CRON)] | None = None
    """Cron expression with minute, hour, day of month, month and day of week, for example `0 3 * * MON`."""
    time_zone: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    """Time zone of `cron` by its IANA name, for example `Europe/Berlin`. Default: UTC."""
    jitter_seconds: DaySeconds | None = None
    """Captures of a slot are spread over this time; each run has a fixed place in it. Default: 0."""


class ScheduleTrigger(Model):
    """A reading of the run that starts a capture."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(self.thresholdPercent) || !(self.type in ['Hanging', 'Straggling'])",
                "Hanging and Straggling have their limits in spec.signals of the MLRun",
                field=".thresholdPercent",
            )
        )
    )

    type: TriggerType
    """StepTimeRise: the step time is above its own baseline, and neither a checkpoint, an evaluation, a compilation nor
    a restart explains it. StepTimeSpread: one host is slower than the median. Hanging, Straggling, GoodputLow: the
    condition of the MLRun is True."""
    threshold_percent: Annotated[int, Field(ge=1, le=1000, json_schema_extra=INT32)] | None = None
    """Limit in per cent: for StepTimeRise of the usual step time (default 10), for StepTimeSpread of the median of the
    hosts (default 20), for GoodputLow the goodput below which it is low (default: that of the MLRun)."""
    settle_seconds: DaySeconds | None = None
    """Time for which it must last. Default: 20 for StepTimeRise, 60 for StepTimeSpread, else 0."""
    cool_down_seconds: Annotated[int, Field(ge=60, le=604_800, json_schema_extra=INT32)] | None = None
    """Least time between two captures of this trigger and run. For 6 hours, a further one also needs a reading 10 per
    cent above the highest that was captured in the attempt. Default: 3600."""


class CaptureTemplate(Model):
    """Fields of the captures, as in `triggerCapture` of an MLDiagnosticsConnection."""

    model_config = ConfigDict(json_schema_extra=cel_rules(*RECORDING_RULES))

    ranks: PositionRanges | None = None
    """Only these ranks, for example `0,4-7`."""
    slices: PositionRanges | None = None
    """Only these slices, for example `0-1`."""
    replicated_job: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only pods of this replicated job of a JobSet, or this worker group of a Ray cluster."""
    container: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only the profilers of this container."""
    limit: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT32)] | None = None
    """Maximum number of targets of a capture: ready ones first, then by rank."""
    capture_port: Port | None = None
    """Port of the profiler server in pods that do not publish one. Default: 9999."""
    duration_seconds: Positive | None = None
    """Duration of the recording in seconds. Default: 2 seconds, of a pulse seven steps, from 300 ms
    to 10 s."""
    duration_milliseconds: Positive | None = None
    """Duration of the recording in milliseconds."""
    storage_location: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Log directory for the profiles. Default: that of the run, else of the operator."""
    tracers: TracerLevels | None = None
    """Levels of the profiler's tracers."""
    delivery: Delivery | None = None
    """Writer of the traces: Operator, Workload or Auto. Default: Auto."""
    recording: Recording | None = None
    """Now: record for the duration. Past: take the events that the program has recorded continuously until now, by
    StartContinuousProfiling; they leave its buffer, and there is no duration. Default: Now."""
    pulse: bool | None = None
    """Record some steps, for the diagnosis. After it the traces are deleted but those of the hosts that it names and of
    one other; the summaries of all hosts are kept. Default: false."""
    deadline_seconds: Annotated[int, Field(ge=1, le=86_400, json_schema_extra=INT32)] | None = None
    """Time limit of each target in seconds."""
    minimum_captured: MinimumCaptured | None = None
    """Targets that must be captured for success: a number, or a percentage. Default: 100%."""
    diagnosis: Literal["Auto", "Off"] | None = None
    """Auto: find the slow host, phase and operation after the capture. Default: set by the administrator."""


class ScheduleBudget(Model):
    """Limits in any 24 hours. The administrator's limits apply too."""

    captures_per_run: Annotated[int, Field(ge=0, le=MAX_CAPTURES, json_schema_extra=INT32)] | None = None
    """Captures of one run. Default: 8, of pulses 160."""
    captures: Annotated[int, Field(ge=0, le=MAX_CAPTURES, json_schema_extra=INT32)] | None = None
    """Captures of all runs. Default: 50, of pulses 500."""
    minimum_interval_seconds: Annotated[int, Field(ge=0, le=604_800, json_schema_extra=INT32)] | None = None
    """Least time between two captures of one run, by all schedules of the namespace. Default: 300."""
    bytes: Bytes | None = None
    """Bytes of all traces. A capture is refused if it could exceed them, by the largest capture until then. Default:
    no limit but that of the administrator."""


class ScheduleHistory(Model):
    """Finished captures that are kept; older ones are deleted."""

    keep: Annotated[int, Field(ge=0, le=1000, json_schema_extra=INT32)] | None = None
    """Captures without findings. Default: 20."""
    keep_with_findings: Annotated[int, Field(ge=0, le=1000, json_schema_extra=INT32)] | None = None
    """Captures whose diagnosis found a cause. Default: 50."""
    delete_artifacts: bool | None = None
    """Delete the files of a capture with it. Default: false, the files stay."""


class ScheduleSpec(Model):
    """Targets, times, triggers and limits of automatic captures."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "has(self.schedule) || (has(self.triggers) && size(self.triggers) > 0)",
                "set schedule, triggers or both",
            )
        )
    )

    target: ScheduleTarget | None = None
    """Runs that are captured. Default: all runs of the namespace."""
    schedule: ScheduleTiming | None = None
    """Times of captures. Absent: only triggers make captures."""
    triggers: (
        Annotated[list[ScheduleTrigger], Field(max_length=MAX_TRIGGERS, json_schema_extra=keyed_by("type"))] | None
    ) = None
    """Readings of a run that start a capture, at most one of each type."""
    capture: CaptureTemplate | None = None
    """Fields of the captures."""
    budget: ScheduleBudget | None = None
    """Limits in any 24 hours."""
    history: ScheduleHistory | None = None
    """Finished captures that are kept."""
    suspend: bool | None = None
    """Make no captures until it is false again; slots in between are not made up. Default: false."""


class ScheduledCapture(Model):
    """A capture of the last 24 hours."""

    name: ObjectName
    """Name of the MLDiagnosticsConnection."""
    run: Annotated[str, Field(max_length=253)]
    """Name of the MLRun."""
    time: Time
    """Time of the decision."""
    slot_time: Time | None = None
    """Time of its slot; absent for a trigger."""
    trigger: TriggerType | None = None
    """Trigger that made it; absent for a slot."""
    attempt: Count | None = None
    """Attempt of the run, of a trigger."""
    value: float | None = None
    """Reading of the trigger; the high-water mark is the highest one."""
    pulse: bool | None = None
    """Whether it is a pulse, of which 20 count as one capture in the administrator's limits."""
    message: Annotated[str, Field(max_length=512)] | None = None
    """Reason with its numbers."""
    state: Literal["Planned", "Created", "Finished", "Refused"]
    """Planned until its object is created. Refused: the API server rejected the object."""
    bytes: Bytes | None = None
    """Size of its traces, once it has finished."""


class ScheduleRefusal(Model):
    """Captures that a limit refused."""

    reason: BudgetReason
    """Limit that refused them."""
    count: Count
    """Number of refused captures since the creation of the schedule."""
    last_time: Time
    """Time of the newest one."""
    run: Annotated[str, Field(max_length=253)]
    """Run of the newest one."""
    message: Annotated[str, Field(max_length=512)]
    """Limit of the newest one, with its numbers."""


class ScheduleStatus(Model):
    """Times, record and refusals of a schedule."""

    observed_generation: Generation | None = None
    """Generation of the object that this status describes."""
    conditions: Conditions | None = None
    """Ready: the schedule is valid and makes captures; else the reason says why not: Suspended, InvalidSchedule,
    NeverDue, TooManySchedules, CaptureRejected, AuthorNotAllowed or StorageFull. BudgetAvailable: False while the
    newest capture was refused."""
    schedule: Annotated[str, Field(max_length=256)] | None = None
    """Times and triggers for people, for example `every 6h, StepTimeRise`."""
    runs: Count | None = None
    """Runs that it applies to now."""
    last_capture_time: Time | None = None
    """Time of the newest capture."""
    next_capture_time: Time | None = None
    """Time of the next slot; absent if only triggers make captures, or while suspended."""
    captures_last_day: Count | None = None
    """Captures of the last 24 hours."""
    bytes_last_day: Bytes | None = None
    """Bytes of their traces."""
    refused: Count | None = None
    """Captures that limits refused since the creation of the schedule."""
    refusals: Annotated[list[ScheduleRefusal], Field(max_length=8, json_schema_extra=keyed_by("reason"))] | None = None
    """Refused captures by limit."""
    captures: Annotated[list[ScheduledCapture], Field(max_length=MAX_CAPTURES, json_schema_extra=ATOMIC)] | None = None
    """Captures of the last 24 hours, the newest last."""


class MLDiagnosticsSchedule(Model):
    """Automatic captures by time and by trigger, within budgets."""

    metadata: ObjectMeta
    spec: ScheduleSpec
    """Targets, times, triggers and limits of automatic captures."""
    status: ScheduleStatus | None = None
    """Times, record and refusals of a schedule."""


read_schedule = partial(read_object, MLDiagnosticsSchedule)
"""Parses an object as the API returns it; see `read_object`."""
