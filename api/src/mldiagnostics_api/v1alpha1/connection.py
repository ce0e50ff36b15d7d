"""The kind `MLDiagnosticsConnection`, version v1alpha1: an on-demand capture.

The CustomResourceDefinition and its reference page are generated from these models. Unknown fields are ignored when an
object is parsed, so that an older operator can read a newer object. Defaults other than that of `profiler` are set by
the plan, because some of them are derived.
"""

from functools import partial
from typing import Annotated, Final, Literal

from mldiagnostics.capture.model import Delivery, Recording
from pydantic import ConfigDict, Field

from mldiagnostics_api.v1alpha1.connection_status import ConnectionStatus
from mldiagnostics_api.v1alpha1.shared import (
    INT32,
    LABEL_KEY,
    RECORDING_RULES,
    Count,
    DaySeconds,
    LabelValue,
    MinimumCaptured,
    Model,
    NameRef,
    ObjectMeta,
    Port,
    PositionRanges,
    Positive,
    TracerLevels,
    WorkloadRef,
    cel_rule,
    cel_rules,
    read_object,
)

PODS_PATTERN: Final = r"^ *[a-z0-9][a-z0-9.-]*( *, *[a-z0-9][a-z0-9.-]*)* *,? *$"
PROFILER: Final = "google_cloud_mldiagnostics"


class LabelRequirement(Model):
    """One requirement on a label."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "self.operator in ['In', 'NotIn'] == (has(self.values) && size(self.values) > 0)",
                "In and NotIn need values, Exists and DoesNotExist must not have values",
                field=".values",
            )
        )
    )

    key: Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
    """Key of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """Operator that compares the label with the values."""
    values: Annotated[list[LabelValue], Field(max_length=64)] | None = None
    """Values for In and NotIn; absent for Exists and DoesNotExist."""


class LabelSelector(Model):
    """Labels of the pods to capture; all requirements must match."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "(has(self.matchLabels) && size(self.matchLabels) > 0)"
                " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
                "the selector is empty, it would match every pod of the namespace; name at least one label",
            )
        )
    )

    match_labels: (
        Annotated[
            dict[str, LabelValue],
            Field(max_length=64),
        ]
        | None
    ) = None
    """Labels that must have exactly these values."""
    match_expressions: Annotated[list[LabelRequirement], Field(max_length=64)] | None = None
    """Further requirements."""


class TargetSelection(Model):
    """Pods to capture, by run, workload or labels."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "[has(self.runRef), has(self.workloadRef), has(self.selector)].filter(given, given).size() == 1",
                "set exactly one of runRef, workloadRef and selector",
            )
        )
    )

    run_ref: NameRef | None = None
    """A run (MLRun) of this namespace whose hosts are captured: the pods of its workload, or those that report it."""
    workload_ref: WorkloadRef | None = None
    """A workload whose pods are captured."""
    selector: LabelSelector | None = None
    """Labels of the pods to capture."""
    ranks: PositionRanges | None = None
    """Only these ranks, for example `0,4-7`. Ranks count by job index, completion index and local rank."""
    slices: PositionRanges | None = None
    """Only these slices, for example `0-1`. A slice is the job index of a JobSet or the group index of a
    LeaderWorkerSet."""
    nodes: Annotated[list[Annotated[str, Field(max_length=253)]], Field(max_length=256)] | None = None
    """Only pods on these nodes."""
    replicated_job: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only pods of this replicated job of a JobSet, or this worker group of a Ray cluster."""
    container: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only the profilers of this container; pods without the container are skipped."""
    limit: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT32)] | None = None
    """Maximum number of targets: ready ones first, then by rank."""


class TriggerCapture(Model):
    """Targets, duration and destination of a capture. Immutable."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule("self == oldSelf", "triggerCapture is immutable; create another object for another capture"),
            cel_rule("has(self.podName) != has(self.target)", "set exactly one of podName and target"),
            *RECORDING_RULES,
        )
    )

    pod_name: Annotated[str, Field(min_length=1, max_length=131_072, pattern=PODS_PATTERN)] | None = None
    """Comma-separated names of the pods to capture. Set exactly one of podName and target."""
    pod_namespace: Annotated[str, Field(max_length=63, pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$")] | None = None
    """Namespace of the pods. Default: the namespace of this object. For another namespace you need the permission to
    create `pods/profile` in it."""
    capture_port: Port | None = None
    """Port of the profiler server in pods that do not publish one by annotation or container port. Default: 9999."""
    duration_seconds: Positive | None = None
    """Duration of the recording in seconds. Default: 2 seconds, of a pulse seven steps, from 300 ms
    to 10 s. The administrator sets the upper limit."""
    duration_milliseconds: Positive | None = None
    """Duration of the recording in milliseconds."""
    profiler: Literal["google_cloud_mldiagnostics"] = PROFILER
    """Protocol of the profiler: XProf's ProfilerService."""
    storage_location: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Log directory for the profiles: `gs://bucket/path`, `s3://bucket/path`, `az://container/path` (or
    `abfss://container@account.dfs.core.windows.net/path`), `volume:///namespace/path` on the operator's volume, or an
    absolute path in the pod. Default: a directory in the operator's default storage."""
    target: TargetSelection | None = None
    """Pods by run, workload or labels. Set exactly one of podName and target."""
    session_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Name of the XProf session, reduced to `[A-Za-z0-9._-]`. It must not exist yet. Default: object name and uid."""
    tracers: TracerLevels | None = None
    """Levels of the profiler's tracers."""
    delivery: Delivery | None = None
    """Writer of the traces. Operator: the operator receives each trace and stores it. Workload: the pod writes its
    trace. Auto: as Operator, but an old profiler server may write to a bucket itself. Default: Auto."""
    recording: Recording | None = None
    """Now: record for the duration. Past: take the events that the program has recorded continuously until now, by
    StartContinuousProfiling; they leave its buffer, and there is no duration. Default: Now."""
    pulse: bool | None = None
    """Record some steps, for the diagnosis. After it the traces are deleted but those of the hosts that it names and of
    one other; the summaries of all hosts are kept. Default: false."""
    start_lead_milliseconds: Annotated[int, Field(ge=0, le=60_000, json_schema_extra=INT32)] | None = None
    """Time until the common start of all targets, in milliseconds. Default: 2000 with more than one target, else 0."""
    deadline_seconds: Annotated[int, Field(ge=1, le=86_400, json_schema_extra=INT32)] | None = None
    """Time limit for recording, serialising and storing of each target, in seconds. Default: start lead + 2 x duration
    + 60 seconds. The administrator sets the upper limit."""
    wait_for_pods_seconds: DaySeconds | None = None
    """Time to wait for pods that do not exist or are not ready yet, in seconds. Default: 0. The administrator sets the
    upper limit."""
    minimum_captured: MinimumCaptured | None = None
    """Targets that must be captured and stored for success: a number, or a percentage of all targets. Default: 100%."""
    diagnosis: Literal["Auto", "Off"] | None = None
    """Auto: find the slow host, phase and operation in the stored traces after the capture. Default: set by the
    administrator."""
    dry_run: bool | None = None
    """Find and report the targets without contacting them."""
    allow_old_server: bool | None = None
    """Also capture from profiler servers of jaxlib before 0.9. Without TensorFlow in the process, such a capture blocks
    the job permanently."""


class ConnectionSpec(Model):
    """A capture. Only `cancel` and `ttlSecondsAfterFinished` may change."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",
                "cancel cannot be unset",
                field=".cancel",
            )
        )
    )

    trigger_capture: TriggerCapture
    """Targets, duration and destination of the capture. Immutable."""
    cancel: bool | None = None
    """Stop the capture. Traces that were recorded until then are stored; the capture ends as Cancelled."""
    ttl_seconds_after_finished: Count | None = None
    """Seconds after which the finished object is deleted. The profiles are kept."""


class MLDiagnosticsConnection(Model):
    """An on-demand capture: profiles pods at the same time into one XProf session."""

    metadata: ObjectMeta
    spec: ConnectionSpec
    """The capture. Only `cancel` and `ttlSecondsAfterFinished` may change."""
    status: ConnectionStatus | None = None
    """Progress and result of the capture."""


read_connection = partial(read_object, MLDiagnosticsConnection)
"""Parses an object as the API returns it; see `read_object`."""
