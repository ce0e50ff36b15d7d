"""The kind `MLDiagnosticsConnection`, version v1alpha1: an on-demand capture, the peer's shape and more.

These models are the one source of the CustomResourceDefinition and of its reference. Reading is lenient (unknown
fields are ignored: an older operator meets a newer object), writing is exact. Defaults other than `profiler` are the
plan's business, so that absence can mean "derive it".
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from mldiagnostics.capture.model import Delivery, TargetState
from pydantic import ConfigDict, Field

from mldiagnostics_api.names import Phase
from mldiagnostics_api.ranges import RANGES_PATTERN
from mldiagnostics_api.v1alpha1.shared import (
    INT32,
    INT64,
    LABEL_KEY,
    Count,
    LabelValue,
    Model,
    NameRef,
    ObjectMeta,
    StatusCondition,
    Time,
    WorkloadRef,
    cel_rule,
    cel_rules,
    read_object,
)

PODS_PATTERN: Final = r"^ *[a-z0-9][a-z0-9.-]*( *, *[a-z0-9][a-z0-9.-]*)* *,? *$"
PROFILER: Final = "google_cloud_mldiagnostics"

RangesText = Annotated[str, Field(max_length=1024, pattern=RANGES_PATTERN)]


class LabelRequirement(Model):
    """One condition on a label."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "self.operator in ['In', 'NotIn'] == (has(self.values) && size(self.values) > 0)",
                "In and NotIn need values, Exists and DoesNotExist have none",
                field=".values",
            )
        )
    )

    key: Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
    """Key of the label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label is compared with the values."""
    values: Annotated[list[LabelValue], Field(max_length=64)] | None = None
    """Values for In and NotIn; absent for Exists and DoesNotExist."""


class LabelSelector(Model):
    """Labels of the pods to capture; all conditions must hold."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "(has(self.matchLabels) && size(self.matchLabels) > 0)"
                " || (has(self.matchExpressions) && size(self.matchExpressions) > 0)",
                "the selector is empty and would match every pod of the namespace; name at least one label",
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
    """Further conditions."""


class TargetSelection(Model):
    """Which pods to capture, by what they belong to."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "[has(self.runRef), has(self.workloadRef), has(self.selector)].filter(given, given).size() == 1",
                "exactly one of runRef, workloadRef and selector is needed",
            )
        )
    )

    run_ref: NameRef | None = None
    """A run (MLRun) whose hosts are captured. Not available yet: the capture fails with `RunsNotAvailable`."""
    workload_ref: WorkloadRef | None = None
    """A workload whose pods are captured."""
    selector: LabelSelector | None = None
    """Labels of the pods to capture."""
    ranks: RangesText | None = None
    """Only these ranks, for example `0,4-7`. A rank is the position by job index, completion index and local rank."""
    slices: RangesText | None = None
    """Only these slices, for example `0-1`: job index of a JobSet, group index of a LeaderWorkerSet."""
    nodes: Annotated[list[Annotated[str, Field(max_length=253)]], Field(max_length=256)] | None = None
    """Only pods on these nodes."""
    replicated_job: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only pods of this replicated job of a JobSet, or this worker group of a Ray cluster."""
    container: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    """Only the profilers of this container; pods without it are skipped."""
    limit: Annotated[int, Field(ge=1, le=100_000, json_schema_extra=INT32)] | None = None
    """At most so many targets, lowest ranks first; targets that are ready go before others."""


class TracerLevels(Model):
    """Levels of the profiler's tracers."""

    host: Annotated[int, Field(ge=0, le=3, json_schema_extra=INT32)] | None = None
    """Level of the host tracer, 2 if absent."""
    device: Annotated[int, Field(ge=0, le=1, json_schema_extra=INT32)] | None = None
    """Level of the device tracer, 1 if absent."""
    python: Annotated[int, Field(ge=0, le=1, json_schema_extra=INT32)] | None = None
    """Level of the Python tracer, 0 if absent."""


class TriggerCapture(Model):
    """What to capture, for how long, and where the profiles go. Immutable."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule("self == oldSelf", "triggerCapture is immutable; create another object for another capture"),
            cel_rule("has(self.podName) != has(self.target)", "exactly one of podName and target is needed"),
            cel_rule(
                "!has(self.durationSeconds) || !has(self.durationMilliseconds)",
                "at most one of durationSeconds and durationMilliseconds may be given",
                field=".durationMilliseconds",
            ),
            cel_rule(
                "!has(self.storageLocation) || !self.storageLocation.matches('(^|/)[.][.](/|$)')",
                "storageLocation may not contain '..'",
                field=".storageLocation",
            ),
        )
    )

    pod_name: Annotated[str, Field(min_length=1, max_length=131_072, pattern=PODS_PATTERN)] | None = None
    """Names of the pods to capture, separated by commas. Exactly one of podName and target is needed."""
    pod_namespace: Annotated[str, Field(max_length=63, pattern=r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?)?$")] | None = None
    """Namespace of the pods; the object's own if absent. Another one needs the right to create `pods/profile` there."""
    capture_port: Annotated[int, Field(ge=1, le=65535, json_schema_extra=INT32)] | None = None
    """Port of the profiler server in pods that publish none by annotation or container port. 9999 if absent."""
    duration_seconds: Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra=INT32)] | None = None
    """How long to record, in seconds. 2 s if neither duration is given; the administrator sets the upper bound."""
    duration_milliseconds: Annotated[int, Field(ge=1, le=2**31 - 1, json_schema_extra=INT32)] | None = None
    """How long to record, in milliseconds."""
    profiler: Literal["google_cloud_mldiagnostics"] = PROFILER
    """Protocol of the profiler: XProf's ProfilerService."""
    storage_location: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Log directory for the profiles: `gs://bucket/path`, `volume:///path` on the operator's volume, or an absolute
    path in the pod. If absent, a directory below the operator's default storage."""
    target: TargetSelection | None = None
    """Pods by run, workload or labels. Exactly one of podName and target is needed."""
    session_id: Annotated[str, Field(min_length=1, max_length=128)] | None = None
    """Name of the XProf session, reduced to `[A-Za-z0-9._-]`. Object name and uid if absent. Never used twice."""
    tracers: TracerLevels | None = None
    """Levels of the profiler's tracers."""
    delivery: Delivery | None = None
    """Who stores the traces. Operator: the trace comes back in the answer. Workload: the pod writes it. Auto, the
    default, tries Operator."""
    start_lead_milliseconds: Annotated[int, Field(ge=0, le=60_000, json_schema_extra=INT32)] | None = None
    """How far ahead the common start of all targets lies. 2000 with more than one target, else 0."""
    deadline_seconds: Annotated[int, Field(ge=1, le=86_400, json_schema_extra=INT32)] | None = None
    """Time for recording, serialisation and storing of each target. Lead + 2 x duration + 60 s if absent."""
    wait_for_pods_seconds: Annotated[int, Field(ge=0, le=86_400, json_schema_extra=INT32)] | None = None
    """How long to wait for pods that are not there or not ready yet. 0 if absent."""
    minimum_captured: (
        Annotated[
            Annotated[int, Field(ge=1, le=2**31 - 1)] | Annotated[str, Field(pattern=r"^([1-9][0-9]?|100)%$")],
            Field(json_schema_extra={"x-kubernetes-int-or-string": True}),
        ]
        | None
    ) = None
    """Targets that must be captured and stored for success: a number, or percent of all targets. 100% if absent."""
    dry_run: bool | None = None
    """Only find the targets and report them; nothing is dialled."""
    allow_old_server: bool | None = None
    """Also capture from servers of jaxlib older than 0.9. Without TensorFlow in the process such a capture freezes
    the job for good."""


class ConnectionSpec(Model):
    """A capture. Only `cancel` and `ttlSecondsAfterFinished` may change."""

    model_config = ConfigDict(
        json_schema_extra=cel_rules(
            cel_rule(
                "!has(oldSelf.cancel) || !oldSelf.cancel || (has(self.cancel) && self.cancel)",
                "cancel cannot be taken back",
                field=".cancel",
            )
        )
    )

    trigger_capture: TriggerCapture
    """What to capture, for how long, and where the profiles go. Immutable."""
    cancel: bool | None = None
    """Stop the capture: what was recorded until then is stored and marked Cancelled."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=2**31 - 1, json_schema_extra=INT32)] | None = None
    """Delete the object so many seconds after it finished; the profiles stay."""


class CaptureResult(Model):
    """The peer's summary of a capture."""

    status: Literal["Succeeded", "Failed", "Unknown"] | None = None
    """How the capture ended."""
    error_message: str | None = None
    """What went wrong."""
    output_location: str | None = None
    """Log directory that holds the session, to be opened in XProf."""


class TargetCounts(Model):
    """Targets by state."""

    total: Count | None = None
    """All targets, skipped ones included."""
    captured: Count | None = None
    """Targets whose trace is stored."""
    failed: Count | None = None
    """Targets that were dialled in vain."""
    skipped: Count | None = None
    """Targets that were not dialled."""


class TargetResult(Model):
    """What became of one target."""

    pod: Annotated[str, Field(max_length=253)]
    """Name of the pod."""
    uid: Annotated[str, Field(max_length=64)] | None = None
    """Uid of the pod."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """Node of the pod."""
    rank: Count | None = None
    """Position of the target in its workload, among the pods that were looked at."""
    slice: Count | None = None
    """Slice of the pod, where labels tell."""
    local_rank: Count | None = None
    """Position of the target in its pod, where that has several."""
    port: Count | None = None
    """Profiler port."""
    state: TargetState
    """How the target ended."""
    reason: Annotated[str, Field(max_length=128)]
    """One word for programs."""
    message: str | None = None
    """A sentence for people."""
    file: str | None = None
    """Where the trace lies."""
    bytes: Annotated[int, Field(ge=0, json_schema_extra=INT64)] | None = None
    """Size of the trace."""
    start_time: Time | None = None
    """When recording began, by the host's clock."""
    stop_time: Time | None = None
    """When recording ended, by the host's clock."""


class ConnectionStatus(Model):
    """What became of the capture."""

    phase: Phase | None = None
    """Pending, Running, Succeeded or Failed."""
    message: str | None = None
    """What happens now, or how it ended."""
    start_time: Time | None = None
    """When work on the capture began."""
    completion_time: Time | None = None
    """When the capture ended."""
    capture_result: CaptureResult | None = None
    """The peer's summary."""
    conditions: (
        Annotated[
            list[StatusCondition],
            Field(
                json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
            ),
        ]
        | None
    ) = None
    """Accepted, Captured, Stored, and Complete, which becomes True with every verdict: its reason is the verdict."""
    observed_generation: Annotated[int, Field(json_schema_extra=INT64)] | None = None
    """Generation of the object that this status is about."""
    session_id: str | None = None
    """XProf session of the capture."""
    attempt: Count | None = None
    """1, or 2 after a restart of the operator made a new attempt necessary."""
    holder: str | None = None
    """The operator's process that works on the capture."""
    planned_start_time: Time | None = None
    """Common start of recording on all targets."""
    deadline: Time | None = None
    """When targets that have not answered are given up."""
    progress: str | None = None
    """Captured and all targets, for example `3/4`."""
    targets: TargetCounts | None = None
    """Targets by state."""
    start_skew_milliseconds: Count | None = None
    """Time between the first and the last host's start of recording, by their clocks."""
    bytes: Annotated[int, Field(ge=0, json_schema_extra=INT64)] | None = None
    """Size of all stored traces."""
    results: Annotated[list[TargetResult], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})] | None = None
    """What became of each target, failures first, as many as fit; `capture.json` beside the traces has all."""


class MLDiagnosticsConnection(Model):
    """An on-demand capture: profiles every chosen pod at the same time and stores one XProf session."""

    metadata: ObjectMeta
    spec: ConnectionSpec
    """What to capture. Only `cancel` and `ttlSecondsAfterFinished` may change."""
    status: ConnectionStatus | None = None
    """What became of the capture."""


def read_connection(body: Mapping[str, Any]) -> MLDiagnosticsConnection:
    """Read an object as the API returns it. Raises ValueError that names every field that is wrong, and why."""
    return read_object(MLDiagnosticsConnection, body)
