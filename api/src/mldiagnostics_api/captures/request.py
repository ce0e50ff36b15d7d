"""The request of a capture, checked against the policy before the cluster is read."""

from dataclasses import dataclass
from typing import Final

from mldiagnostics.capture.model import Delivery, Recording

from mldiagnostics_api.captures.delivery import delivery_of, root_of
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.pulse import pulse_ms
from mldiagnostics_api.captures.refusal import CaptureRefusal, RefusalError
from mldiagnostics_api.captures.run_target import RunTarget
from mldiagnostics_api.captures.selection import selection
from mldiagnostics_api.captures.targets import TargetFilter
from mldiagnostics_api.formats import enumerated
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.v1alpha1.mlrun import MLRunSpec
from mldiagnostics_api.v1alpha1.shared import LONGEST_PULSE_MS
from mldiagnostics_api.workloads.kinds import WorkloadKind

DEFAULT_DURATION_MS: Final = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """A checked capture; exactly one of `pods`, `selector` and `workload` is set."""

    tenant: str
    """Namespace of the object; quotas apply to it."""
    namespace: str
    """Namespace of the pods."""
    pods: tuple[str, ...] = ()
    selector: str | None = None
    """Value of the API's `labelSelector` parameter."""
    workload: WorkloadKind | None = None
    """Kind of the workload to get; its `pods` makes a label selector from the object."""
    workload_name: str = ""
    run: str = ""
    """Name of the MLRun whose pods these are; empty without one."""
    uids: frozenset[str] = frozenset()
    """Uids that the workload, or the named pods, of the run have; empty if any will do."""
    port: int | None = None
    """Port of pods that neither report nor publish one."""
    target_filter: TargetFilter
    duration_ms: int
    recording: Recording
    root: Location
    """The log directory itself if `explicit`, else the root of the runs' log directories."""
    explicit: bool
    delivery: Delivery

    @property
    def description(self) -> str:
        """The requested pods or workload, for messages."""
        if self.workload:
            return f"{self.workload.kind} {self.namespace}/{self.workload_name}"
        if self.selector is not None:
            return f"pods with labels {self.selector} in namespace {self.namespace}"
        return f"{'pod' if len(self.pods) == 1 else 'pods'} {enumerated(self.pods)} in namespace {self.namespace}"


def check(
    connection: MLDiagnosticsConnection, policy: Policy, run: RunTarget | None = None
) -> CaptureRequest | CaptureRefusal:
    """Check a capture against its schema and the policy.

    The API server checks the same where schema and admission policy are installed.

    Args:
        connection: The object.
        policy: Limits of the administrator.
        run: The MLRun that `target.runRef` names; None if there is none.

    Returns:
        The request, or the refusal.
    """
    trigger = connection.spec.trigger_capture
    namespace = trigger.pod_namespace or connection.metadata.namespace
    try:
        _check_shape(trigger)
        _check_namespace(policy, object_namespace=connection.metadata.namespace, pod_namespace=namespace)
        _check_times(policy, trigger)
        settings = run.run.spec if run else MLRunSpec()
        storage = trigger.storage_location or settings.storage_location
        port = trigger.capture_port or (settings.profiling.port if settings.profiling else None)
        _check_port(policy, port)
        duration_ms = _duration_ms(trigger, policy, run)
        selected = selection(connection, namespace, run)
        root = root_of(trigger, storage, policy, connection.metadata.namespace, namespace)
        return CaptureRequest(
            tenant=connection.metadata.namespace,
            namespace=namespace,
            pods=selected.pods.pods,
            selector=selected.selector,
            workload=selected.pods.workload,
            workload_name=selected.pods.workload_name,
            run=run.run.metadata.name if run else "",
            uids=selected.pods.uids,
            port=port,
            target_filter=selected.target_filter,
            duration_ms=duration_ms,
            recording=trigger.recording or Recording.NOW,
            root=root,
            explicit=trigger.storage_location is not None,
            delivery=delivery_of(trigger, root, policy, namespace, chosen=storage is not None),
        )
    except RefusalError as error:
        return error.refusal


def _check_shape(trigger: TriggerCapture) -> None:
    if (trigger.pod_name is None) == (trigger.target is None):
        raise RefusalError(RefusalReason.INVALID, "triggerCapture: set exactly one of podName and target")
    if trigger.duration_seconds is not None and trigger.duration_milliseconds is not None:
        raise RefusalError(
            RefusalReason.INVALID, "triggerCapture: set at most one of durationSeconds and durationMilliseconds"
        )
    if trigger.pulse:
        _check_pulse(trigger)
    if trigger.target is None:
        return
    kinds = (trigger.target.run_ref, trigger.target.workload_ref, trigger.target.selector)
    if sum(kind is not None for kind in kinds) != 1:
        raise RefusalError(RefusalReason.INVALID, "target: set exactly one of runRef, workloadRef and selector")


def _check_pulse(trigger: TriggerCapture) -> None:
    if trigger.diagnosis == "Off" or trigger.recording is Recording.PAST:
        raise RefusalError(
            RefusalReason.INVALID,
            "triggerCapture.pulse: records now, and its diagnosis decides which traces are kept; "
            "remove diagnosis and recording",
        )
    if max(1000 * (trigger.duration_seconds or 0), trigger.duration_milliseconds or 0) > LONGEST_PULSE_MS:
        raise RefusalError(
            RefusalReason.INVALID,
            f"triggerCapture.pulse: takes at most {LONGEST_PULSE_MS} ms; set a shorter duration, or none",
        )


def _check_namespace(policy: Policy, *, object_namespace: str, pod_namespace: str) -> None:
    if not policy.may_capture(object_namespace=object_namespace, pod_namespace=pod_namespace):
        raise RefusalError(
            RefusalReason.NAMESPACE_NOT_ALLOWED,
            f"podNamespace '{pod_namespace}': captures of namespace '{object_namespace}' may not profile its pods; "
            f"create the object in '{pod_namespace}', or ask the administrator to add it to policy.crossNamespaces",
        )


def _check_port(policy: Policy, port: int | None) -> None:
    if port is not None and port not in policy.allowed_ports:
        raise RefusalError(
            RefusalReason.PORT_NOT_ALLOWED,
            f"capturePort {port}: not one of the allowed ports {policy.allowed_ports}; use one of them, or ask the "
            "administrator to add it to policy.allowedPorts",
        )


def _check_times(policy: Policy, trigger: TriggerCapture) -> None:
    limits = (
        ("deadlineSeconds", trigger.deadline_seconds, "maxDeadlineSeconds", policy.max_deadline_s),
        ("waitForPodsSeconds", trigger.wait_for_pods_seconds, "maxWaitForPodsSeconds", policy.max_wait_s),
    )
    for field, seconds, value, limit in limits:
        if (seconds or 0) > limit:
            reason = RefusalReason.DEADLINE_TOO_LONG if field == "deadlineSeconds" else RefusalReason.WAIT_TOO_LONG
            raise RefusalError(
                reason,
                f"{field} {seconds}: longer than the limit of {limit} s; use a shorter one, or ask the administrator "
                f"to raise policy.{value}",
            )


def _duration_ms(trigger: TriggerCapture, policy: Policy, run: RunTarget | None) -> int:
    if trigger.duration_seconds is not None:
        duration_ms = 1000 * trigger.duration_seconds
    elif trigger.duration_milliseconds is not None:
        duration_ms = trigger.duration_milliseconds
    elif trigger.pulse:
        duration_ms = min(pulse_ms(run.step_time_s if run else None), policy.max_duration_ms)
    else:
        duration_ms = DEFAULT_DURATION_MS
    if duration_ms > policy.max_duration_ms:
        raise RefusalError(
            RefusalReason.DURATION_TOO_LONG,
            f"duration {duration_ms / 1000:g} s: longer than the limit of {policy.max_duration_ms / 1000:g} s; "
            "use a shorter one, or ask the administrator to raise policy.maxDurationSeconds",
        )
    return duration_ms
