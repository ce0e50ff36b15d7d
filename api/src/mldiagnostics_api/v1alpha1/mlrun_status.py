"""The status of an `MLRun`, version v1alpha1.

It has counts and exceptions, never a list that grows with the number of hosts: the complete lists are in the run's
files.
"""

from typing import Annotated, Final, Literal

from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from pydantic import Field

from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.v1alpha1.shared import (
    ATOMIC,
    INT64,
    Conditions,
    Count,
    Generation,
    Model,
    Notes,
    RunId,
    Seconds,
    Tags,
    Text,
    Time,
)

MAX_EXCEPTIONS: Final = 32
"""Hosts with a problem that the status lists; the others are only counted."""
MAX_FINDINGS: Final = 8
MAX_ATTEMPTS: Final = 16
"""Attempts that the status describes, the newest ones."""
MAX_ALIASES: Final = 16
MAX_CONFIGS: Final = 256
"""Entries of one section of the configuration."""


class HostException(Model):
    """A host that needs attention."""

    host: Annotated[str, Field(max_length=253)]
    """Pod of the host, else its name."""
    rank: Count | None = None
    """Rank of the host."""
    slice: Count | None = None
    """Slice of the host."""
    node: Annotated[str, Field(max_length=253)] | None = None
    """Node of the host."""
    reason: Annotated[str, Field(max_length=128)]
    """Reason as one word for programs, for example `Lost`."""
    message: Text | None = None
    """Explanation for people."""
    last_report_time: Time | None = None
    """Time of the newest report of the host."""


class RunHosts(Model):
    """Hosts of the run: counts, and those that need attention."""

    expected: Count | None = None
    """Hosts of the workload by its spec, else the world size that the SDK reports."""
    reporting: Count | None = None
    """Hosts that reported recently, without those whose pod has ended."""
    restarts: Count | None = None
    """Restarts of the containers of its pods that exist, by the kubelet's count."""
    summary: Annotated[str, Field(max_length=32)] | None = None
    """Reporting hosts of expected hosts, for example `3/4`."""
    exceptions: Annotated[list[HostException], Field(max_length=MAX_EXCEPTIONS, json_schema_extra=ATOMIC)] | None = None
    """Hosts that need attention, at most 32."""


class RunProgress(Model):
    """Progress of the run, as the process that leads it reports."""

    step: Annotated[int, Field(ge=0, json_schema_extra=INT64)] | None = None
    """Newest step."""
    step_time_seconds: Seconds | None = None
    """Recent time of a step in seconds."""
    step_time: Annotated[str, Field(max_length=32)] | None = None
    """Recent time of a step for people, for example `210 ms`."""
    last_step_time: Time | None = None
    """Time at which the newest step was reported."""


class RunGoodput(Model):
    """Account of the run's time, from its first attempt on."""

    ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    """Productive share of the elapsed time."""
    summary: Annotated[str, Field(max_length=32)] | None = None
    """Productive share as a percentage, for example `93.4%`."""
    elapsed_seconds: Seconds | None = None
    """Elapsed time of the account."""
    productive_seconds: Seconds | None = None
    """Time of steps that counted."""
    unproductive_seconds: Annotated[dict[str, Seconds], Field(max_length=64)] | None = None
    """Other time, by cause."""
    disruptions: Count | None = None
    """Interruptions of the run."""
    as_of_time: Time | None = None
    """Moment of the account, with microseconds: an account of this moment is the same."""
    ettr: Annotated[float, Field(ge=0, le=1)] | None = None
    """Productive share of the time since the creation of the workload, with queueing, as of `asOfTime`."""
    mttr_seconds: Seconds | None = None
    """Mean time to recover: from the last step of an attempt to the first one of the next; absent before a recovery."""
    mttf_seconds: Seconds | None = None
    """Time of the account without recoveries, by the number of failures; absent before a failure."""
    start_up_seconds: Annotated[dict[str, Seconds], Field(max_length=8)] | None = None
    """Start-up of all attempts in this status by stage: queueing, scheduling, pull and startup."""


class RunConfigs(Model):
    """Configuration of the run, as the process that leads it reports, at most 32 KiB.

    Values of keys that look like secrets are redacted. The complete configuration is in the run's files.
    """

    software: Annotated[dict[str, Text], Field(max_length=MAX_CONFIGS)] | None = None
    """Versions and settings of the software."""
    hardware: Annotated[dict[str, Text], Field(max_length=MAX_CONFIGS)] | None = None
    """Accelerators and machines."""
    user: Annotated[dict[str, Text], Field(max_length=MAX_CONFIGS)] | None = None
    """Configuration that the program gave; values other than text as JSON."""
    omitted: Count | None = None
    """Entries that are not here because of the limits."""


class RunSession(Model):
    """A profile of the run."""

    id: Annotated[str, Field(max_length=253)]
    """XProf session."""
    state: Annotated[str, Field(max_length=64)] | None = None
    """State of the profile."""
    source: Annotated[str, Field(max_length=64)] | None = None
    """Origin of the profile: `Program`, or `Capture` for an MLDiagnosticsConnection."""
    capture: Annotated[str, Field(max_length=253)] | None = None
    """Name of the MLDiagnosticsConnection."""
    directory: Text | None = None
    """Log directory that holds the session."""
    start_time: Time | None = None
    """Start of the recording."""
    stop_time: Time | None = None
    """End of the recording."""


RunSessions = Annotated[list[RunSession], Field(max_length=MAX_SESSIONS, json_schema_extra=ATOMIC)]


class RunFinding(Model):
    """A finding of the newest diagnosed profile of the run."""

    code: Annotated[str, Field(max_length=64)]
    """Name of the rule, for example `SlowHost`."""
    severity: Literal["critical", "warning", "info"]
    """critical from a fifth of the step, warning from a tenth, info else."""
    message: Text
    """The finding in one sentence. It was made of the traces, which the profiled program writes."""
    hosts: Annotated[list[Annotated[str, Field(max_length=253)]], Field(max_length=8)] | None = None
    """Pods that it is about, at most 8."""
    session: Annotated[str, Field(max_length=253)]
    """XProf session of the profile."""
    capture: Annotated[str, Field(max_length=253)] | None = None
    """Name of the MLDiagnosticsConnection."""
    time: Time
    """End of the capture."""


class RunStartUp(Model):
    """Start-up of an attempt: the time of each milestone."""

    created_time: Time | None = None
    """Creation of the workload; of a later attempt, the end of the attempt before."""
    admitted_time: Time | None = None
    """Admission by its queue; without a queue, the creation."""
    scheduled_time: Time | None = None
    """All pods have nodes."""
    pulled_time: Time | None = None
    """All images are on the nodes; without events of the kubelet, the start of the containers."""
    started_time: Time | None = None
    """All containers have started."""
    first_step_time: Time | None = None
    """First step that a process reported, by its clock less the difference to the operator's."""


class RunAttempt(Model):
    """One attempt: a life of the program without a gap.

    The next one begins with a restart by the controller of the workload, a restart in place of the container that
    leads, or the resumption of a suspended workload.
    """

    attempt: Count
    """Number of the attempt, from 0; each attempt has a higher number than the one before it."""
    controller_attempt: Count | None = None
    """Number by the controller of the workload, the same for attempts between which it counted no restart."""
    container_restarts: Count | None = None
    """Restarts of the container that leads at the beginning of the attempt, by the kubelet's count."""
    pod_uid: Annotated[str, Field(max_length=64)] | None = None
    """Uid of the pod that leads."""
    start_time: Time | None = None
    """Time at which the operator saw the attempt start."""
    end_time: Time | None = None
    """Time at which the attempt ended."""
    reason: Annotated[str, Field(max_length=128)] | None = None
    """Why the attempt ended, as one word for programs."""
    message: Text | None = None
    """Why the attempt ended, for people."""
    cause: Annotated[str, Field(max_length=64)] | None = None
    """Cause of its end as pods, nodes and events show it: Preemption, Maintenance, NodeShutdown, NodeLost, Eviction,
    Quota, OutOfMemory, DeadlineExceeded, ExitCode, Suspended, Deleted, StartFailure, Scheduling or Unknown. It may
    change for some minutes after the end: a lost node shows late."""
    cause_message: Text | None = None
    """The object that shows the cause, and its words."""
    start_up: RunStartUp | None = None
    """Start-up of the attempt."""


class MLRunStatus(Model):
    """Phase, progress and result of the run."""

    run_id: RunId | None = None
    """Id of the run."""
    aliases: Annotated[list[Annotated[str, Field(max_length=128)]], Field(max_length=MAX_ALIASES)] | None = None
    """Other ids under which SDKs report this run."""
    display_name: Annotated[str, Field(max_length=253)] | None = None
    """Name of the run for people: `spec.displayName`, else the name that the program reports, else that of the
    workload."""
    reported_name: Annotated[str, Field(max_length=256)] | None = None
    """Name that the program reports."""
    reported_tags: Tags | None = None
    """Tags that the program reports; `spec.tags` count before them."""
    reported_notes: Notes | None = None
    """Notes that the program reports; `spec.notes` count before them."""
    storage_location: Text | None = None
    """Root that the operator uses for the run's files: `spec.storageLocation`, else its default storage."""
    reported_storage: Text | None = None
    """Place of files as the program reports it: a URL, or a path in its pod. The operator does not use it."""
    phase: MLRunPhase | None = None
    """Pending, Active, Completed or Failed. Completed and Failed are final for the run of a workload."""
    reason: Annotated[str, Field(max_length=128)] | None = None
    """Reason of the phase as one word for programs."""
    message: Text | None = None
    """Current step, or the result."""
    workload: Annotated[str, Field(max_length=320)] | None = None
    """Kind and name of the workload, for example `JobSet/trainer`."""
    conditions: Conditions | None = None
    """Admitted: no queue holds the workload back. Started: it runs or has run. Reporting: at least one host reports.
    Profilable: at least one reporting host has a profiler server. Complete becomes True when the run has ended, also if
    it failed; its reason is the result. HostsSilent, Straggling, Hanging and GoodputLow are True while the run needs
    attention, and absent before."""
    observed_generation: Generation | None = None
    """Generation of the object that this status describes."""
    attempt: Count | None = None
    """Number of the current attempt, from 0; restarts in place and resumptions count too."""
    attempts: Annotated[list[RunAttempt], Field(max_length=MAX_ATTEMPTS, json_schema_extra=ATOMIC)] | None = None
    """The newest attempts, at most 16, the newest last."""
    start_time: Time | None = None
    """Start of the run."""
    completion_time: Time | None = None
    """End of the run."""
    independent: bool | None = None
    """Whether its processes are independent, such as those of a Deployment: no rank leads them. Such a run has hosts,
    restarts and profiles; it has no progress, no goodput, and one attempt."""
    hosts: RunHosts | None = None
    """Hosts of the run: counts, and those that need attention."""
    progress: RunProgress | None = None
    """Progress of the run."""
    metrics: Annotated[dict[str, float], Field(max_length=MAX_METRICS)] | None = None
    """Newest value of each metric, at most 64. Curves are in the run's files."""
    goodput: RunGoodput | None = None
    """Account of the run's time."""
    configs: RunConfigs | None = None
    """Configuration of the run."""
    profile_sessions: RunSessions | None = None
    """The newest profiles, at most 32, the newest last."""
    findings: Annotated[list[RunFinding], Field(max_length=MAX_FINDINGS, json_schema_extra=ATOMIC)] | None = None
    """Findings of the newest diagnosed profile, at most 8, the most expensive one first. One that the newest profile
    does not show any more leaves."""
    last_heartbeat_time: Time | None = None
    """Time of the newest report of any host."""
    url: Text | None = None
    """Address of the run in the web view."""
