"""The status of `MLDiagnosticsConnection`, version v1alpha1.

It has the progress, the results and the diagnosis of a capture.
"""

from typing import Annotated, Literal

from mldiagnostics.capture.model import TargetState
from mldiagnostics.findings import Severity
from pydantic import Field

from mldiagnostics_api.names import Phase
from mldiagnostics_api.v1alpha1.shared import (
    ATOMIC,
    Bytes,
    Conditions,
    Count,
    Generation,
    Model,
    Time,
)


class CaptureResult(Model):
    """Summary of a capture, with the same fields as in the peer."""

    status: Literal["Succeeded", "Failed", "Unknown"] | None = None
    """Result of the capture."""
    error_message: str | None = None
    """Error, if the capture failed."""
    output_location: str | None = None
    """Log directory of the session, to open in XProf."""


class TargetCounts(Model):
    """Targets by state."""

    total: Count | None = None
    """All targets, skipped ones included, without pods whose position no controller confirms."""
    captured: Count | None = None
    """Targets whose trace is stored."""
    failed: Count | None = None
    """Targets that were contacted but not captured."""
    skipped: Count | None = None
    """Targets that were not contacted."""


class TargetResult(Model):
    """Result of one target."""

    pod: Annotated[str, Field(max_length=253)]
    """Name of the pod."""
    uid: Annotated[str, Field(max_length=64)] | None = None
    """Uid of the pod."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """Node of the pod."""
    rank: Count | None = None
    """Position of the target in its workload."""
    slice: Count | None = None
    """Slice of the pod, if its labels have one."""
    local_rank: Count | None = None
    """Position of the target in its pod, if the pod has several targets."""
    port: Count | None = None
    """Profiler port."""
    state: TargetState
    """State in which the target ended."""
    reason: Annotated[str, Field(max_length=128)]
    """Reason as one word for programs."""
    message: str | None = None
    """Explanation for people."""
    file: str | None = None
    """Path of the trace; absent if there is none, or if it was deleted after the diagnosis of a pulse."""
    bytes: Bytes | None = None
    """Size of the trace in bytes."""
    start_time: Time | None = None
    """Start of the recording by the host's clock."""
    stop_time: Time | None = None
    """End of the recording by the host's clock."""


class FindingTarget(Model):
    """A target that a finding is about."""

    pod: Annotated[str, Field(max_length=253)]
    """Name of the pod."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """Node of the pod."""
    rank: Count | None = None
    """Position of the target in its workload."""


class CaptureFinding(Model):
    """A cause of slow steps, or the reason why none can be named."""

    code: Annotated[str, Field(max_length=64)]
    """Name of the rule, for example `SlowHost`."""
    severity: Severity
    """critical from a fifth of the step, warning from a tenth, info else."""
    message: Annotated[str, Field(max_length=1024)]
    """The finding in one sentence. It was made of the traces, which the profiled program writes."""
    next_step: Annotated[str, Field(max_length=1024)]
    """The next step to take."""
    phase: Annotated[str, Field(max_length=64)] | None = None
    """Phase of the step, for example `input`."""
    operation: Annotated[str, Field(max_length=64)] | None = None
    """Operation in that phase."""
    cost_seconds: Annotated[float, Field(ge=0)] | None = None
    """Seconds of each step that the job loses."""
    cost_percent: Annotated[float, Field(ge=0)] | None = None
    """`costSeconds` as a percentage of the step."""
    targets: Annotated[list[FindingTarget], Field(max_length=8)] | None = None
    """Targets that it is about, at most 8, by the names that the operator knows."""
    run_id: Annotated[str, Field(max_length=128)] | None = None
    """Id of the run that it is about, if the capture has several."""


class CaptureDiagnosis(Model):
    """Diagnosis of the session."""

    state: Literal["Pending", "Done", "Failed"]
    """Pending until a Job has read the traces."""
    summary: Annotated[str, Field(max_length=256)] | None = None
    """The most expensive finding, for example `SlowHost: trainer-2 in input, 46 % of the step`."""
    critical: Count | None = None
    """Number of critical findings."""
    warnings: Count | None = None
    """Number of warnings."""
    findings: Annotated[list[CaptureFinding], Field(max_length=8)] | None = None
    """Findings, at most 8, the most expensive one first. `diagnosis.json` in the session has all."""
    runs: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=16)] | None = None
    """Ids of the runs of the targets, at most 16, whose status gets the findings."""


class ConnectionStatus(Model):
    """Progress and result of the capture."""

    phase: Phase | None = None
    """Pending, Running, Succeeded or Failed."""
    message: str | None = None
    """Current step, or the result."""
    start_time: Time | None = None
    """Time at which the operator started the capture."""
    completion_time: Time | None = None
    """Time at which the capture ended."""
    capture_result: CaptureResult | None = None
    """Summary of the capture, with the same fields as in the peer."""
    conditions: Conditions | None = None
    """Conditions Accepted, Captured, Stored, Complete and Diagnosed. Complete becomes True when the capture ends, also
    if it failed; its reason is the result. Diagnosed follows; it never changes the result of the capture."""
    observed_generation: Generation | None = None
    """Generation of the object that this status describes."""
    session_id: str | None = None
    """XProf session of the capture."""
    attempt: Count | None = None
    """Number of the attempt: 1, or 2 if the operator restarted during the capture."""
    planning_trials: Count | None = None
    """Operator processes that began to plan the capture after another process had ended. After 2 it is refused."""
    holder: str | None = None
    """Operator process that runs the capture."""
    planned_start_time: Time | None = None
    """Common start of the recording on all targets."""
    deadline: Time | None = None
    """Time at which targets without a response fail."""
    progress: str | None = None
    """Captured targets of all targets, for example `3/4`."""
    targets: TargetCounts | None = None
    """Targets by state."""
    start_skew_milliseconds: Count | None = None
    """Milliseconds between the first and the last start of the recording, by the hosts' clocks."""
    bytes: Bytes | None = None
    """Size of all stored traces in bytes."""
    results: Annotated[list[TargetResult], Field(json_schema_extra=ATOMIC)] | None = None
    """Results of the targets, failures first. Long lists are cut; `capture.json` in the session has all results."""
    diagnosis: CaptureDiagnosis | None = None
    """Diagnosis of the session."""
