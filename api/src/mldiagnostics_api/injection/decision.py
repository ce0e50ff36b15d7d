"""The decision whether a run's identity is injected into a pod."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mldiagnostics.identity import run_label_value

from mldiagnostics_api.formats import format_time
from mldiagnostics_api.injection.contents import PatchTooLarge, pod_contents
from mldiagnostics_api.injection.model import Injection, InjectionReason, NotInjected, OwnersUnknown
from mldiagnostics_api.injection.options import InjectionOptions
from mldiagnostics_api.injection.owning_run import OwningRun, find_owning_run
from mldiagnostics_api.injection.shape import ContainerShape, MalformedPod, PodShape
from mldiagnostics_api.names import (
    INJECT_CONTAINERS_ANNOTATION,
    INJECTION_ANNOTATION,
    RUN_ANNOTATION,
    RUN_CREATED_ANNOTATION,
    RUN_LABEL,
)
from mldiagnostics_api.workloads.kinds import LONE_POD, Object
from mldiagnostics_api.workloads.matching import Match, MatchReason, match
from mldiagnostics_api.workloads.variables import InjectedIdentity, InjectionSettings

MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""Limit of the API server for all annotations of an object (k8s.io/apimachinery, TotalAnnotationSizeLimitB)."""
MAX_POD_BYTES: Final = 5 * 2**18
"""Largest pod, as JSON, that gets additions.

etcd rejects objects above 1.5 MiB (of protobuf, which is not larger than JSON). The rest is for our additions, other
webhooks and the pod's status.
"""
_MAX_MESSAGE: Final = 400
_DROPPED: Final = "; without its labels, which are too long"
_EXCLUDED: Final = frozenset(
    {MatchReason.NAMESPACE_EXCLUDED, MatchReason.NAMESPACE_EXEMPT, MatchReason.WORKLOAD_OPTED_OUT}
)


class _Declined(Exception):
    def __init__(self, reason: InjectionReason | MatchReason, message: str, *, requested: bool = True) -> None:
        super().__init__(message)
        self.reason, self.requested = reason, requested
        # The message quotes user input, which may not be valid text.
        self.message = message.encode("ascii", "backslashreplace").decode("ascii")[:_MAX_MESSAGE]


def decide(
    pod: object,
    *,
    namespace: str,
    namespace_labels: Mapping[str, str],
    namespace_annotations: Mapping[str, str],
    owners: tuple[Object, ...] | OwnersUnknown,
    settings: InjectionSettings,
    now: datetime,
    pod_bytes: int = 0,
) -> Injection | NotInjected:
    """Decide about the pod of an admission request, any JSON; never raises.

    Args:
        pod: The pod of the request.
        namespace: Its namespace.
        namespace_labels: Labels of the namespace. If the API server selected the request by the label of the
            namespace, the label must be in it.
        namespace_annotations: Annotations of the namespace.
        owners: Result of `owner_chain(…, pods=False)` for `controller_of(pod)`; metadata is enough.
        settings: Settings of the webhook.
        now: Current time with time zone.
        pod_bytes: Size of the pod as JSON, or of a text that contains it.
    """
    try:
        shape = PodShape.of(pod, namespace)
    except MalformedPod as fault:
        return NotInjected(reason=InjectionReason.MALFORMED, message=str(fault), requested=False, annotations={})
    try:
        run, matched = _matched(shape, namespace, namespace_labels, owners, now)
        _check_size(pod_bytes)
        options = _options(shape, run, namespace_annotations)
        return _injection(shape, run, options, matched.message, namespace=namespace, settings=settings)
    except _Declined as refusal:
        return _not_injected(shape, refusal, pod_bytes)


def _matched(
    pod: PodShape,
    namespace: str,
    namespace_labels: Mapping[str, str],
    owners: tuple[Object, ...] | OwnersUnknown,
    now: datetime,
) -> tuple[OwningRun, Match]:
    """Return the run and its match; raise _Declined if it is not opted in."""
    owning_run = find_owning_run(pod, owners, now)
    workload, labels = (owning_run.workload, owning_run.labels) if isinstance(owning_run, OwningRun) else (LONE_POD, {})
    matched = match(
        workload,
        labels=labels,
        pod_labels=pod.labels or {},
        namespace=namespace,
        namespace_labels=namespace_labels,
    )
    if isinstance(owning_run, OwningRun):
        if not matched.opted_in:
            raise _Declined(
                matched.reason, matched.message, requested=matched.reason is MatchReason.KIND_NEEDS_OWN_LABEL
            )
        return owning_run, matched
    if matched.reason in _EXCLUDED:
        raise _Declined(matched.reason, matched.message, requested=False)
    requested = matched.opted_in or matched.reason is MatchReason.KIND_NEEDS_OWN_LABEL
    raise _Declined(
        owning_run.reason,
        owning_run.message,
        requested=requested and owning_run.reason is not InjectionReason.MIRROR_POD,
    )


def _injection(
    pod: PodShape,
    owning_run: OwningRun,
    options: InjectionOptions,
    reason: str,
    *,
    namespace: str,
    settings: InjectionSettings,
) -> Injection:
    """Return all additions that the pod lacks; raise _Declined if impossible."""
    chosen = _chosen(pod, options)
    identity = _identified(owning_run, settings.cluster, namespace)
    labels = {RUN_LABEL: run_label_value(identity.run_id)}
    annotations = {RUN_ANNOTATION: identity.run_id}
    if not identity.uid:
        annotations[RUN_CREATED_ANNOTATION] = format_time(identity.created)
    _check_same_run(pod, labels, annotations)
    message = f"run {identity.run_id} of {identity.workload.kind} {identity.name}: {reason}"
    other = [labels, annotations, INJECTION_ANNOTATION, message, _DROPPED]
    try:
        additions = pod_contents(pod, chosen, identity, settings, options, other=other)
    except PatchTooLarge as large:
        advice = f"choose fewer containers with annotation {INJECT_CONTAINERS_ANNOTATION}"
        raise _Declined(InjectionReason.TOO_LARGE, f"{large}; {advice}") from large
    annotations[INJECTION_ANNOTATION] = f"Injected: {message}{_DROPPED if additions.labels_dropped else ''}"
    added = _lacking(pod.annotations, {**annotations, **additions.annotations})
    if not _fits(pod.annotations, added):
        raise _Declined(
            InjectionReason.ANNOTATIONS_FULL,
            f"annotations: no space for the run within the limit of {MAX_ANNOTATION_BYTES} bytes; shorten them",
        )
    return Injection(
        identity=identity,
        message=message,
        labels=_lacking(pod.labels, labels),
        annotations=added,
        volume=additions.volume,
        containers=additions.containers,
        labels_dropped=additions.labels_dropped,
    )


def _chosen(pod: PodShape, options: InjectionOptions) -> tuple[ContainerShape, ...]:
    chosen = tuple(container for container in pod.containers if options.chooses(container))
    if not chosen:
        names = ", ".join(container.name for container in pod.containers) or "none"
        raise _Declined(
            InjectionReason.NO_CONTAINER_CHOSEN,
            f"annotation {INJECT_CONTAINERS_ANNOTATION}: no such container in the pod; use one of {names}",
        )
    return chosen


def _identified(owning_run: OwningRun, cluster: str, namespace: str) -> InjectedIdentity:
    try:
        return InjectedIdentity.of(owning_run.run, owning_run.workload, cluster=cluster, namespace=namespace)
    except ValueError as fault:
        raise _Declined(InjectionReason.IDENTITY_UNUSABLE, str(fault)) from fault


def _options(pod: PodShape, owning_run: OwningRun, of_namespace: Mapping[str, str]) -> InjectionOptions:
    try:
        options = InjectionOptions.of(
            pod=pod.annotations or {}, workload=owning_run.annotations, namespace=of_namespace
        )
    except ValueError as fault:
        raise _Declined(InjectionReason.ANNOTATION_INVALID, str(fault)) from fault
    if options.opted_out:
        raise _Declined(InjectionReason.OPTED_OUT, options.opted_out, requested=False)
    return options


def _check_same_run(pod: PodShape, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    """Decline a pod that names another run: it is a copy of another pod."""
    present = {**(pod.labels or {}), **(pod.annotations or {})}
    other = [key for key, value in {**labels, **annotations}.items() if present.get(key, value) != value]
    if other:
        copied = f"{', '.join(other)}: set for another run; remove it from the template of the pod"
        raise _Declined(InjectionReason.OTHER_RUN, copied)


def _check_size(pod_bytes: int) -> None:
    if pod_bytes > MAX_POD_BYTES:
        raise _Declined(
            InjectionReason.POD_TOO_LARGE,
            f"the pod: {pod_bytes} bytes of JSON, near etcd's limit; move data into a ConfigMap or a volume",
        )


def _not_injected(pod: PodShape, refusal: _Declined, pod_bytes: int) -> NotInjected:
    explained = {INJECTION_ANNOTATION: f"{refusal.reason}: {refusal.message}"} if refusal.requested else {}
    lacking = _lacking(pod.annotations, explained)
    fits = pod_bytes <= MAX_POD_BYTES and _fits(pod.annotations, lacking)
    return NotInjected(
        reason=refusal.reason,
        message=refusal.message,
        requested=refusal.requested,
        annotations=lacking if fits else {},
        warning="" if fits or not lacking else f"no run is injected into the pod: {refusal.message}",
    )


def _lacking(present: Mapping[str, str] | None, wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if key not in (present or {})}


def _fits(present: Mapping[str, str] | None, added: Mapping[str, str]) -> bool:
    """Return whether all annotations are within the limit of the API server."""
    return _bytes(present or {}) + _bytes(added) <= MAX_ANNOTATION_BYTES


def _bytes(annotations: Mapping[str, str]) -> int:
    return len("".join((*annotations, *annotations.values())).encode("utf-8", "surrogatepass"))
