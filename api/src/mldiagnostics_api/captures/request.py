"""The request of a capture, checked against the policy before the cluster is read."""

import re
from dataclasses import dataclass
from typing import Final

from mldiagnostics.capture.model import Delivery, Recording

from mldiagnostics_api.captures.location import Location, Medium
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.pulse import pulse_ms
from mldiagnostics_api.captures.run_target import NoRunPods, RunPods, RunTarget, run_pods
from mldiagnostics_api.captures.targets import TargetFilter
from mldiagnostics_api.formats import enumerated, quote
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import LABEL_KEY, LabelSelector, MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.v1alpha1.mlrun import MLRunSpec
from mldiagnostics_api.v1alpha1.shared import LONGEST_PULSE_MS, WorkloadRef
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS, WorkloadKind, selector_text, workload_of

DEFAULT_DURATION_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class CaptureRefusal:
    """A capture that cannot be planned, with the reason."""

    reason: RefusalReason
    message: str
    transient: bool = False
    """Whether waiting may help."""


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


class _RefusalError(Exception):
    def __init__(self, reason: RefusalReason, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.refusal = CaptureRefusal(reason, message, transient=transient)


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
        pods = _pods(connection, namespace, run)
        settings = run.run.spec if run else MLRunSpec()
        storage = trigger.storage_location or settings.storage_location
        port = trigger.capture_port or (settings.profiling.port if settings.profiling else None)
        _check_port(policy, port)
        root = _root(trigger, storage, policy, connection.metadata.namespace, namespace)
        return CaptureRequest(
            tenant=connection.metadata.namespace,
            namespace=namespace,
            pods=pods.pods,
            selector=_selector(trigger),
            workload=pods.workload,
            workload_name=pods.workload_name,
            run=run.run.metadata.name if run else "",
            uids=pods.uids,
            port=port,
            target_filter=_target_filter(trigger),
            duration_ms=_duration_ms(trigger, policy, run),
            recording=trigger.recording or Recording.NOW,
            root=root,
            explicit=trigger.storage_location is not None,
            delivery=_delivery(trigger, root, policy, namespace, chosen=storage is not None),
        )
    except _RefusalError as error:
        return error.refusal


def _check_shape(trigger: TriggerCapture) -> None:
    if (trigger.pod_name is None) == (trigger.target is None):
        raise _RefusalError(RefusalReason.INVALID, "triggerCapture: set exactly one of podName and target")
    if trigger.duration_seconds is not None and trigger.duration_milliseconds is not None:
        raise _RefusalError(
            RefusalReason.INVALID, "triggerCapture: set at most one of durationSeconds and durationMilliseconds"
        )
    if trigger.pulse:
        _check_pulse(trigger)
    if trigger.target is None:
        return
    kinds = (trigger.target.run_ref, trigger.target.workload_ref, trigger.target.selector)
    if sum(kind is not None for kind in kinds) != 1:
        raise _RefusalError(RefusalReason.INVALID, "target: set exactly one of runRef, workloadRef and selector")


def _check_pulse(trigger: TriggerCapture) -> None:
    if trigger.diagnosis == "Off" or trigger.recording is Recording.PAST:
        raise _RefusalError(
            RefusalReason.INVALID,
            "triggerCapture.pulse: records now, and its diagnosis decides which traces are kept; "
            "remove diagnosis and recording",
        )
    if max(1000 * (trigger.duration_seconds or 0), trigger.duration_milliseconds or 0) > LONGEST_PULSE_MS:
        raise _RefusalError(
            RefusalReason.INVALID,
            f"triggerCapture.pulse: takes at most {LONGEST_PULSE_MS} ms; set a shorter duration, or none",
        )


def _check_namespace(policy: Policy, *, object_namespace: str, pod_namespace: str) -> None:
    if not policy.may_capture(object_namespace=object_namespace, pod_namespace=pod_namespace):
        raise _RefusalError(
            RefusalReason.NAMESPACE_NOT_ALLOWED,
            f"podNamespace '{pod_namespace}': captures of namespace '{object_namespace}' may not profile its pods; "
            f"create the object in '{pod_namespace}', or ask the administrator to add it to policy.crossNamespaces",
        )


def _check_port(policy: Policy, port: int | None) -> None:
    if port is not None and port not in policy.allowed_ports:
        raise _RefusalError(
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
            raise _RefusalError(
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
        duration_ms = min(pulse_ms(_step_time_s(run)), policy.max_duration_ms)
    else:
        duration_ms = DEFAULT_DURATION_MS
    if duration_ms > policy.max_duration_ms:
        raise _RefusalError(
            RefusalReason.DURATION_TOO_LONG,
            f"duration {duration_ms / 1000:g} s: longer than the limit of {policy.max_duration_ms / 1000:g} s; "
            "use a shorter one, or ask the administrator to raise policy.maxDurationSeconds",
        )
    return duration_ms


def _step_time_s(run: RunTarget | None) -> float | None:
    status = run.run.status if run else None
    return status.progress.step_time_seconds if status and status.progress else None


def _root(
    trigger: TriggerCapture, storage: str | None, policy: Policy, object_namespace: str, pod_namespace: str
) -> Location:
    if storage is None:
        if policy.default_storage is None:
            raise _RefusalError(
                RefusalReason.STORAGE_MISSING,
                "storageLocation: not set, and the operator has no default storage; set storageLocation",
            )
        return policy.default_storage
    try:
        location = Location.parse(storage)
    except ValueError as error:
        raise _RefusalError(RefusalReason.STORAGE_INVALID, f"storageLocation: {error}") from error
    # The pod writes with its own permissions, so its namespace must be allowed too.
    by_pod = location.medium is Medium.POD or trigger.delivery is Delivery.WORKLOAD
    for namespace in {object_namespace, pod_namespace} if by_pod else {object_namespace}:
        if refusal := policy.storage_refusal(location, namespace):
            raise _RefusalError(RefusalReason.STORAGE_NOT_ALLOWED, refusal)
    return location


def _delivery(
    trigger: TriggerCapture, location: Location, policy: Policy, pod_namespace: str, *, chosen: bool
) -> Delivery:
    requested = trigger.delivery or Delivery.AUTO
    is_past = trigger.recording is Recording.PAST
    if location.medium is Medium.POD and (is_past or trigger.pulse):
        field = "recording Past" if is_past else "pulse"
        raise _RefusalError(
            RefusalReason.DELIVERY_IMPOSSIBLE,
            f"{field}: the operator cannot write to or read '{location}' in the pod; use a bucket or its volume",
        )
    if is_past and requested is Delivery.WORKLOAD:
        raise _RefusalError(
            RefusalReason.DELIVERY_IMPOSSIBLE,
            "delivery Workload: recording Past is returned to the operator; use delivery Operator or Auto",
        )
    if location.medium is Medium.POD:
        if requested is Delivery.OPERATOR:
            raise _RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE,
                f"delivery Operator: cannot write to '{location}' in the pod; use delivery Workload or Auto",
            )
        return Delivery.WORKLOAD
    if location.medium is Medium.VOLUME:
        if requested is Delivery.WORKLOAD:
            raise _RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE,
                f"delivery Workload: cannot write to '{location}' on the operator's volume; "
                "use a bucket or a path in the pod",
            )
        return Delivery.OPERATOR
    # Auto lets an old server write to the bucket with the pod's permissions.
    if requested is Delivery.AUTO and chosen and not policy.may_store(location, pod_namespace):
        return Delivery.OPERATOR
    return requested


def _pods(connection: MLDiagnosticsConnection, namespace: str, run: RunTarget | None) -> RunPods:
    """Return the requested workload or pods; neither if they are requested by labels."""
    trigger = connection.spec.trigger_capture
    reference = trigger.target.run_ref if trigger.target else None
    if reference is None:
        target = trigger.target.workload_ref if trigger.target else None
        return RunPods(_workload(target), target.name if target else "", _names(trigger.pod_name), frozenset())
    if namespace != connection.metadata.namespace:
        raise _RefusalError(
            RefusalReason.INVALID,
            f"podNamespace '{namespace}': not allowed with target.runRef, whose pods are in the namespace of the "
            "capture; remove podNamespace",
        )
    try:
        return run_pods(reference.name, namespace, run)
    except NoRunPods as error:
        raise _RefusalError(error.reason, str(error), transient=error.transient) from error


def _workload(reference: WorkloadRef | None) -> WorkloadKind | None:
    if reference is None:
        return None
    workload = workload_of(reference.kind, reference.api_version)
    if workload is None or workload.groups or workload.kind == "Pod":
        kind = f"{reference.api_version} {reference.kind}" if reference.api_version else reference.kind
        raise _RefusalError(
            RefusalReason.KIND_NOT_SUPPORTED,
            f"target.workloadRef: {kind} is not a supported kind; use one of {', '.join(SELECTABLE_KINDS)}",
        )
    return workload


def _names(pod_name: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in (pod_name or "").split(",") if (name := part.strip())))


def _selector(trigger: TriggerCapture) -> str | None:
    if trigger.target is None or trigger.target.selector is None:
        return None
    _check_selector(trigger.target.selector)
    text = selector_text(trigger.target.selector.model_dump(by_alias=True, exclude_none=True))
    if not text:
        raise _RefusalError(
            RefusalReason.INVALID,
            "target.selector: empty, it would match every pod of the namespace; name at least one label",
        )
    return text


def _check_selector(selector: LabelSelector) -> None:
    for key in selector.match_labels or {}:
        _check_label_key("matchLabels", key)
    for condition in selector.match_expressions or ():
        _check_label_key("matchExpressions", condition.key)
        if (condition.operator in {"In", "NotIn"}) != bool(condition.values):
            raise _RefusalError(
                RefusalReason.INVALID,
                f"target.selector.matchExpressions: '{condition.key}' with {condition.operator}: "
                "In and NotIn need values, Exists and DoesNotExist must not have values",
            )


def _check_label_key(field: str, key: str) -> None:
    """Refuse a key that selectors reject; the schema bounds its characters only."""
    prefix, _, name = key.rpartition("/")
    if not re.fullmatch(LABEL_KEY, key) or len(prefix) > 253 or len(name) > 63:
        raise _RefusalError(
            RefusalReason.INVALID,
            f"target.selector.{field}: {quote(key)} is not a valid label key; use at most 63 characters, "
            "after a prefix of at most 253 characters and '/'",
        )


def _target_filter(trigger: TriggerCapture) -> TargetFilter:
    try:
        return TargetFilter.of(trigger.target)
    except ValueError as error:
        raise _RefusalError(RefusalReason.INVALID, f"target.{error}") from error
