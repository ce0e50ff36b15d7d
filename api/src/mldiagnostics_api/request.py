"""What a capture asks for, checked against the policy before anything in the cluster is looked at."""

import re
from dataclasses import dataclass
from typing import Final

from mldiagnostics.capture.model import Delivery

from mldiagnostics_api.location import Location, Medium
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.policy import Policy
from mldiagnostics_api.targets import TargetFilter
from mldiagnostics_api.v1alpha1 import LABEL_KEY, LabelSelector, MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.workloads import WorkloadKind, selector_text, workload_of

DEFAULT_DURATION_MS: Final = 2000


@dataclass(frozen=True, slots=True)
class CaptureRefusal:
    """Why there is no plan. `transient`: it may pass when one waits."""

    reason: RefusalReason
    message: str
    transient: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureRequest:
    """A checked capture. Exactly one of `pods`, `selector` and `workload` says where to look for pods."""

    namespace: str
    pods: tuple[str, ...] = ()
    selector: str | None = None
    """As the API's `labelSelector` parameter."""
    workload: WorkloadKind | None = None
    """Kind of the workload to get; its `pods` turns the object into a label selector."""
    workload_name: str = ""
    narrowing: TargetFilter
    duration_ms: int
    root: Location
    """The log directory itself if `explicit`, else the root below which every run has one."""
    explicit: bool
    delivery: Delivery

    @property
    def sought(self) -> str:
        """Say what is looked for, for messages."""
        if self.workload:
            return f"{self.workload.kind} {self.namespace}/{self.workload_name}"
        if self.selector is not None:
            return f"pods with labels {self.selector} in namespace {self.namespace}"
        return f"{'pod' if len(self.pods) == 1 else 'pods'} {', '.join(self.pods)} in namespace {self.namespace}"


class _RefusalError(Exception):  # it carries a value, it is no error
    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.refused = CaptureRefusal(reason, message)


def check(connection: MLDiagnosticsConnection, policy: Policy) -> CaptureRequest | CaptureRefusal:
    """Check what is asked for.

    Schema and admission policy check the same where they are installed; here it holds in any case.
    """
    trigger = connection.spec.trigger_capture
    namespace = trigger.pod_namespace or connection.metadata.namespace
    try:
        _check_shape(trigger)
        _check_namespace(policy, object_namespace=connection.metadata.namespace, pod_namespace=namespace)
        _check_port(policy, trigger.capture_port)
        root = _root(trigger, policy, connection.metadata.namespace, namespace)
        workload = _workload(trigger)
        target = trigger.target
        return CaptureRequest(
            namespace=namespace,
            pods=_names(trigger.pod_name),
            selector=_selector(trigger),
            workload=workload,
            workload_name=target.workload_ref.name if target and target.workload_ref else "",
            narrowing=_narrowing(trigger),
            duration_ms=_duration_ms(trigger, policy),
            root=root,
            explicit=trigger.storage_location is not None,
            delivery=_delivery(trigger, root, policy, namespace),
        )
    except _RefusalError as refusal:
        return refusal.refused


def _check_shape(trigger: TriggerCapture) -> None:
    if (trigger.pod_name is None) == (trigger.target is None):
        raise _RefusalError(RefusalReason.INVALID, "exactly one of podName and target is needed")
    if trigger.duration_seconds is not None and trigger.duration_milliseconds is not None:
        raise _RefusalError(
            RefusalReason.INVALID, "at most one of durationSeconds and durationMilliseconds may be given"
        )
    if trigger.target is None:
        return
    kinds = (trigger.target.run_ref, trigger.target.workload_ref, trigger.target.selector)
    if sum(kind is not None for kind in kinds) != 1:
        raise _RefusalError(RefusalReason.INVALID, "target needs exactly one of runRef, workloadRef and selector")
    if trigger.target.run_ref is not None:
        raise _RefusalError(
            RefusalReason.RUNS_NOT_AVAILABLE,
            "target.runRef: this version has no runs (MLRun); use target.workloadRef",
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
            f"capturePort {port}: not among the allowed ports {policy.allowed_ports}; use one of them, or ask the "
            "administrator to add it to policy.allowedPorts",
        )


def _duration_ms(trigger: TriggerCapture, policy: Policy) -> int:
    if trigger.duration_seconds is not None:
        duration_ms = 1000 * trigger.duration_seconds
    else:
        duration_ms = trigger.duration_milliseconds or DEFAULT_DURATION_MS
    if duration_ms > policy.max_duration_ms:
        raise _RefusalError(
            RefusalReason.DURATION_TOO_LONG,
            f"duration of {duration_ms / 1000:g} s: longer than the allowed {policy.max_duration_ms / 1000:g} s; "
            "shorten it, or ask the administrator to raise policy.maxDurationSeconds",
        )
    return duration_ms


def _root(trigger: TriggerCapture, policy: Policy, object_namespace: str, pod_namespace: str) -> Location:
    if trigger.storage_location is None:
        if policy.default_storage is None:
            raise _RefusalError(
                RefusalReason.STORAGE_MISSING,
                "storageLocation is absent, and the operator has no default storage: give one",
            )
        return policy.default_storage
    try:
        location = Location.parse(trigger.storage_location)
    except ValueError as error:
        raise _RefusalError(RefusalReason.STORAGE_INVALID, f"storageLocation {error}") from error
    # What the pod writes, it writes with its own permissions: its namespace has to allow that too.
    by_pod = location.medium is Medium.POD or trigger.delivery is Delivery.WORKLOAD
    for namespace in {object_namespace, pod_namespace} if by_pod else {object_namespace}:
        if not policy.may_store(location, namespace):
            raise _RefusalError(RefusalReason.STORAGE_NOT_ALLOWED, _not_allowed(location, policy, namespace))
    return location


def _not_allowed(location: Location, policy: Policy, namespace: str) -> str:
    allowed = ", ".join(map(str, policy.prefixes(namespace))) or "nothing"
    opened = ", or to set policy.strictTenancy=false, which allows every bucket"
    return (
        f"storageLocation '{location}': not below a location that is allowed for namespace '{namespace}' ({allowed}); "
        "use one of these, or ask the administrator to add it to policy.allowedStorage"
        f"{opened if location.medium is Medium.BUCKET else ''}"
    )


def _delivery(trigger: TriggerCapture, location: Location, policy: Policy, pod_namespace: str) -> Delivery:
    asked = trigger.delivery or Delivery.AUTO
    if location.medium is Medium.POD:
        if asked is Delivery.OPERATOR:
            raise _RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE, f"delivery Operator cannot write to {location}, which is in the pod"
            )
        return Delivery.WORKLOAD
    if location.medium is Medium.VOLUME:
        if asked is Delivery.WORKLOAD:
            raise _RefusalError(
                RefusalReason.DELIVERY_IMPOSSIBLE,
                f"delivery Workload cannot write to {location}, the operator's volume; use gs:// or a path in the pod",
            )
        return Delivery.OPERATOR
    # Auto lets an old server write into the bucket itself, with the pod's permissions.
    if asked is Delivery.AUTO and trigger.storage_location and not policy.may_store(location, pod_namespace):
        return Delivery.OPERATOR
    return asked


def _workload(trigger: TriggerCapture) -> WorkloadKind | None:
    if trigger.target is None or trigger.target.workload_ref is None:
        return None
    reference = trigger.target.workload_ref
    workload = workload_of(reference.kind, reference.api_version)
    if workload is None or workload.groups or workload.kind == "Pod":
        shown = f"{reference.api_version} {reference.kind}" if reference.api_version else reference.kind
        raise _RefusalError(
            RefusalReason.KIND_NOT_SUPPORTED, f"target.workloadRef: {shown} is no supported kind of workload"
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
            RefusalReason.INVALID, "target.selector is empty and would match every pod of the namespace"
        )
    return text


def _check_selector(selector: LabelSelector) -> None:
    for key in selector.match_labels or {}:
        if not re.fullmatch(LABEL_KEY, key):
            raise _RefusalError(RefusalReason.INVALID, f"target.selector.matchLabels: {key!r} is no key of a label")
    for condition in selector.match_expressions or ():
        if (condition.operator in {"In", "NotIn"}) != bool(condition.values):
            raise _RefusalError(
                RefusalReason.INVALID,
                f"target.selector.matchExpressions: {condition.key} {condition.operator}: In and NotIn need values, "
                "Exists and DoesNotExist have none",
            )


def _narrowing(trigger: TriggerCapture) -> TargetFilter:
    try:
        return TargetFilter.of(trigger.target)
    except ValueError as error:
        raise _RefusalError(RefusalReason.INVALID, f"target.{error}") from error
