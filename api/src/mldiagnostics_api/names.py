"""Names that the cluster sees: labels, annotations, conditions and reasons."""

from enum import StrEnum
from typing import Final

GROUP: Final = "diagon.gke.io"
VERSION: Final = "v1alpha1"

FIELD_MANAGER: Final = "mldiagnostics-connection-operator"

OPT_IN_LABEL: Final = "managed-mldiagnostics-gke"
"""On a workload or its namespace: `true` opts in, `false` on a workload opts out."""
EXEMPT_NAMESPACE_LABEL: Final = "diagon-webhook-exempt"
"""On a namespace: `true` excludes all of it, as with the peer."""
RUN_LABEL: Final = f"{GROUP}/run"
"""On pods and runs: the first 32 digits of the run id (64 do not fit into a label value)."""
RUN_ANNOTATION: Final = f"{GROUP}/run-id"
"""On pods and runs: the whole run id."""
ARTIFACTS_FINALIZER: Final = f"{GROUP}/delete-artifacts"
"""Finalizer of runs whose files are deleted with their object."""
RUN_GROUP_LABEL: Final = f"{GROUP}/run-group"
"""On runs: the group of the run."""
RUN_CREATED_ANNOTATION: Final = f"{GROUP}/run-created"
"""On a pod that is its own run: the time that its run id uses as creation time, RFC 3339 in UTC."""
INJECT_ANNOTATION: Final = f"{GROUP}/inject"
"""On a pod, its workload or its namespace: `false` disables injection."""
INJECT_CONTAINERS_ANNOTATION: Final = f"{GROUP}/inject-containers"
"""On a pod or its workload: comma-separated containers to inject; `*` stands for the default ones."""
SINKS_ANNOTATION: Final = f"{GROUP}/sinks"
"""On a pod, its workload or its namespace: a comma list of sink URLs, in place of the webhook's setting."""
PEER_URL_ANNOTATION: Final = f"{GROUP}/peer-control-plane"
"""On a pod or its workload: URL of the control plane for the peer SDK, which then runs in its self-hosted mode."""
INJECTION_ANNOTATION: Final = f"{GROUP}/injection"
"""On pods: the injected run, or the reason why nothing was injected."""
CONTROL_PLANE_CA_ANNOTATION: Final = f"{GROUP}/control-plane-ca"
"""On pods: the certificates of the control plane in PEM; a volume mounts them as a file."""
REQUESTED_BY_ANNOTATION: Final = f"{GROUP}/requested-by"
"""On captures: the user for whom the web view made the object, with an account of its own."""
SCHEDULE_LABEL: Final = f"{GROUP}/schedule"
"""On captures: the uid of the MLDiagnosticsSchedule that made them."""
TRIGGER_LABEL: Final = f"{GROUP}/trigger"
"""On captures of a schedule: the trigger that fired, or `Slot`."""
AUTHOR_ANNOTATION: Final = f"{GROUP}/author"
"""On a schedule: name and groups of the user who wrote its spec, one in each line."""
CAPTURE_REASON_ANNOTATION: Final = f"{GROUP}/capture-reason"
"""On captures of a schedule: the slot, or the trigger with its numbers."""
PROFILER_PORTS_ANNOTATION: Final = f"{GROUP}/profiler-ports"
"""On pods: comma-separated profiler ports, one for each rank in the pod, by local rank."""
PROFILER_PORT_PREFIX: Final = "mldiag-prof"
"""Prefix of the names of container ports that are profiler ports, one for each rank in the pod."""

DEFAULT_ALLOWED_PORTS: Final = "9012,9999-10014"


class Phase(StrEnum):
    """Phase of a capture, as in the peer."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


FINISHED_PHASES: Final = frozenset({Phase.SUCCEEDED, Phase.FAILED})


class ConditionType(StrEnum):
    """Condition types of a capture; the reason of `Complete` is the result."""

    ACCEPTED = "Accepted"
    CAPTURED = "Captured"
    STORED = "Stored"
    COMPLETE = "Complete"
    DIAGNOSED = "Diagnosed"
    """Unknown while a diagnosis is pending; absent without one."""


class MLRunPhase(StrEnum):
    """Phase of a run."""

    PENDING = "Pending"
    """Waits for admission, nodes or images."""
    ACTIVE = "Active"
    COMPLETED = "Completed"
    FAILED = "Failed"


FINISHED_RUN_PHASES: Final = frozenset({MLRunPhase.COMPLETED, MLRunPhase.FAILED})


class RunConditionType(StrEnum):
    """Condition types of a run; the reason of `Complete` is the result."""

    ADMITTED = "Admitted"
    STARTED = "Started"
    REPORTING = "Reporting"
    PROFILABLE = "Profilable"
    COMPLETE = "Complete"


class ScheduleConditionType(StrEnum):
    """Condition types of a schedule."""

    READY = "Ready"
    BUDGET_AVAILABLE = "BudgetAvailable"


class ScheduleReason(StrEnum):
    """Reasons of the conditions of a schedule, beside those of budgets."""

    SCHEDULED = "Scheduled"
    SUSPENDED = "Suspended"
    INVALID = "InvalidSchedule"
    NEVER_DUE = "NeverDue"
    TOO_MANY_SCHEDULES = "TooManySchedules"
    CAPTURE_REJECTED = "CaptureRejected"
    AUTHOR_NOT_ALLOWED = "AuthorNotAllowed"
    STORAGE_FULL = "StorageFull"
    AVAILABLE = "Available"


class RefusalReason(StrEnum):
    """Why a capture is refused before any target is contacted."""

    INVALID = "InvalidSpec"
    KIND_NOT_SUPPORTED = "KindNotSupported"
    RUN_NOT_FOUND = "RunNotFound"
    RUN_ENDED = "RunEnded"
    RUN_WITHOUT_PODS = "RunWithoutPods"
    NAMESPACE_NOT_ALLOWED = "NamespaceNotAllowed"
    DURATION_TOO_LONG = "DurationTooLong"
    DEADLINE_TOO_SHORT = "DeadlineTooShort"
    DEADLINE_TOO_LONG = "DeadlineTooLong"
    WAIT_TOO_LONG = "WaitTooLong"
    PORT_NOT_ALLOWED = "PortNotAllowed"
    STORAGE_MISSING = "StorageMissing"
    STORAGE_INVALID = "StorageInvalid"
    STORAGE_NOT_ALLOWED = "StorageNotAllowed"
    DELIVERY_IMPOSSIBLE = "DeliveryImpossible"
    WORKLOAD_NOT_FOUND = "WorkloadNotFound"
    PODS_NOT_FOUND = "PodsNotFound"
    NO_POD_MATCHES = "NoPodMatches"
    TOO_MANY_TARGETS = "TooManyTargets"
    TOO_MANY_WAITING = "TooManyWaiting"
    LOOKUP_REJECTED = "LookupRejected"
    PLANNING_FAILED = "PlanningFailed"
    SESSION_EXISTS = "SessionExists"


class SkipReason(StrEnum):
    """Why a chosen pod is not contacted."""

    NOT_FOUND = "NotFound"
    NOT_CONFIRMED = "PositionNotConfirmed"
    NOT_READY = "NotReady"
    NO_IP = "NoIP"
    FINISHED = "Finished"
    TERMINATING = "Terminating"
    HOST_NETWORK_NOT_ALLOWED = "HostNetworkNotAllowed"
    ADDRESS_NOT_ALLOWED = "AddressNotAllowed"
    CONTAINER_NOT_FOUND = "ContainerNotFound"
    PORT_INVALID = "PortInvalid"
    PORT_NOT_ALLOWED = "PortNotAllowed"
    COMMAND_BUFFERS_ACTIVE = "CommandBuffersActive"
    """An automatic capture of a GPU whose process a profile can end."""


class CompleteReason(StrEnum):
    """Result of a capture that was not refused: the reason of `Complete`."""

    SUCCEEDED = "Succeeded"
    PARTLY_SUCCEEDED = "PartlySucceeded"
    """Some targets failed or were skipped, but `minimumCaptured` was reached."""
    TOO_FEW_CAPTURED = "TooFewCaptured"
    NOTHING_CAPTURED = "NothingCaptured"
    CANCELLED = "Cancelled"
    INTERRUPTED = "Interrupted"
    DRY_RUN = "DryRun"


class ProgressReason(StrEnum):
    """Reasons of conditions while a capture runs or after one of its steps."""

    ACCEPTED = "Accepted"
    LOOKING_UP = "LookingUp"
    WAITING_FOR_PODS = "WaitingForPods"
    CAPTURING = "Capturing"
    CAPTURED = "Captured"
    PARTLY_CAPTURED = "PartlyCaptured"
    STORED = "Stored"
    PARTLY_STORED = "PartlyStored"
    NOTHING_TO_STORE = "NothingToStore"
