"""Whether a pod is told of its run: all of it, or nothing and the reason why not."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from mldiagnostics.identity import run_label_value

from mldiagnostics_api.injection.contents import PatchTooLarge, contents
from mldiagnostics_api.injection.model import Injection, InjectionReason, NotInjected, OwnersUnknown
from mldiagnostics_api.injection.options import InjectionOptions
from mldiagnostics_api.injection.owning_run import OwningRun, belonging
from mldiagnostics_api.injection.shape import ContainerShape, MalformedPod, PodShape
from mldiagnostics_api.matching import Match, MatchReason, match
from mldiagnostics_api.names import (
    INJECT_CONTAINERS_ANNOTATION,
    INJECTION_ANNOTATION,
    RUN_ANNOTATION,
    RUN_CREATED_ANNOTATION,
    RUN_LABEL,
)
from mldiagnostics_api.variables import InjectedIdentity, InjectionSettings, written
from mldiagnostics_api.workloads import LONE_POD, Object

MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""Most that the API server takes for all annotations of an object (k8s.io/apimachinery, TotalAnnotationSizeLimitB)."""
_MAX_MESSAGE: Final = 400
_DROPPED: Final = "; its labels are too long to be told"
_KEPT_OUT: Final = frozenset(
    {MatchReason.NAMESPACE_EXCLUDED, MatchReason.NAMESPACE_EXEMPT, MatchReason.WORKLOAD_OPTED_OUT}
)


class _Declined(Exception):
    def __init__(self, reason: InjectionReason | MatchReason, message: str, *, asked: bool = True) -> None:
        super().__init__(message)
        self.reason, self.asked = reason, asked
        # Foreign names are in it: it must be writable whatever they are.
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
) -> Injection | NotInjected:
    """Decide about any JSON that is said to be a pod; never raises.

    `owners` is what `owner_chain(…, pods=False)` returns for `controller_of(pod)`: metadata is enough. `now` has a time
    zone. Where the API server itself has seen the label of the namespace, put it into `namespace_labels`.
    """
    try:
        shape = PodShape.of(pod, namespace)
    except MalformedPod as fault:
        return NotInjected(reason=InjectionReason.MALFORMED, message=str(fault), asked=False, annotations={})
    try:
        found, matched = _matched(shape, namespace, namespace_labels, owners, now)
        wishes = _wishes(shape, found, namespace_annotations)
        return _injection(shape, found, wishes, matched.message, namespace=namespace, settings=settings)
    except _Declined as refusal:
        return _refused(shape, refusal)


def _matched(
    pod: PodShape,
    namespace: str,
    namespace_labels: Mapping[str, str],
    owners: tuple[Object, ...] | OwnersUnknown,
    now: datetime,
) -> tuple[OwningRun, Match]:
    """Find the run and who opted it in. Raises _Refusal."""
    found = belonging(pod, owners, now)
    workload, labels = (found.workload, found.labels) if isinstance(found, OwningRun) else (LONE_POD, {})
    matched = match(
        workload,
        labels=labels,
        pod_labels=pod.labels or {},
        namespace=namespace,
        namespace_labels=namespace_labels,
    )
    if isinstance(found, OwningRun):
        if not matched.opted_in:
            raise _Declined(matched.why, matched.message, asked=matched.why is MatchReason.KIND_NEEDS_OWN_LABEL)
        return found, matched
    if matched.why in _KEPT_OUT:
        raise _Declined(matched.why, matched.message, asked=False)
    asked = matched.opted_in or matched.why is MatchReason.KIND_NEEDS_OWN_LABEL
    raise _Declined(found.reason, found.message, asked=asked and found.reason is not InjectionReason.MIRROR_POD)


def _injection(
    pod: PodShape, found: OwningRun, wishes: InjectionOptions, why: str, *, namespace: str, settings: InjectionSettings
) -> Injection:
    """Put together all that the pod lacks. Raises _Refusal."""
    chosen = _chosen(pod, wishes)
    identity = _identified(found, settings.cluster, namespace)
    labels = {RUN_LABEL: run_label_value(identity.run_id)}
    annotations = {RUN_ANNOTATION: identity.run_id}
    if not identity.uid:
        annotations[RUN_CREATED_ANNOTATION] = written(identity.created)
    _agree(pod, labels, annotations)
    message = f"run {identity.run_id} of {identity.workload.kind} {identity.name}: {why}"
    besides = [labels, annotations, INJECTION_ANNOTATION, message, _DROPPED]
    try:
        gathered = contents(pod, chosen, identity, settings, wishes, besides=besides)
    except PatchTooLarge as large:
        advice = f"choose fewer containers with {INJECT_CONTAINERS_ANNOTATION}"
        raise _Declined(InjectionReason.TOO_LARGE, f"{large}: {advice}") from large
    annotations[INJECTION_ANNOTATION] = f"Injected: {message}{_DROPPED if gathered.labels_dropped else ''}"
    added = _lacking(pod.annotations, {**annotations, **gathered.annotations})
    if not _fits(pod.annotations, added):
        raise _Declined(
            InjectionReason.ANNOTATIONS_FULL, f"all annotations may have {MAX_ANNOTATION_BYTES} bytes, too few for ours"
        )
    return Injection(
        identity=identity,
        message=message,
        labels=_lacking(pod.labels, labels),
        annotations=added,
        volume=gathered.volume,
        containers=gathered.containers,
        labels_dropped=gathered.labels_dropped,
    )


def _chosen(pod: PodShape, wishes: InjectionOptions) -> tuple[ContainerShape, ...]:
    chosen = tuple(container for container in pod.containers if wishes.chooses(container))
    if not chosen:
        has = ", ".join(container.name for container in pod.containers) or "none"
        raise _Declined(
            InjectionReason.NO_CONTAINER_CHOSEN,
            f"{INJECT_CONTAINERS_ANNOTATION} chooses no container of the pod, it has {has}",
        )
    return chosen


def _identified(found: OwningRun, cluster: str, namespace: str) -> InjectedIdentity:
    try:
        return InjectedIdentity.of(found.run, found.workload, cluster=cluster, namespace=namespace)
    except ValueError as fault:
        raise _Declined(InjectionReason.IDENTITY_UNUSABLE, str(fault)) from fault


def _wishes(pod: PodShape, found: OwningRun, of_namespace: Mapping[str, str]) -> InjectionOptions:
    try:
        wishes = InjectionOptions.of(pod=pod.annotations or {}, workload=found.annotations, namespace=of_namespace)
    except ValueError as fault:
        raise _Declined(InjectionReason.ANNOTATION_INVALID, str(fault)) from fault
    if wishes.opted_out:
        raise _Declined(InjectionReason.OPTED_OUT, wishes.opted_out, asked=False)
    return wishes


def _agree(pod: PodShape, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
    """Refuse a pod that says already, differently, which run it belongs to: it is a copy, and nothing is replaced."""
    present = {**(pod.labels or {}), **(pod.annotations or {})}
    other = [key for key, value in {**labels, **annotations}.items() if present.get(key, value) != value]
    if other:
        copied = f"the pod says of another run in {', '.join(other)}: leave that out of what it is made from"
        raise _Declined(InjectionReason.OTHER_RUN, copied)


def _refused(pod: PodShape, refusal: _Declined) -> NotInjected:
    explained = {INJECTION_ANNOTATION: f"{refusal.reason}: {refusal.message}"} if refusal.asked else {}
    lacking = _lacking(pod.annotations, explained)
    return NotInjected(
        reason=refusal.reason,
        message=refusal.message,
        asked=refusal.asked,
        annotations=lacking if _fits(pod.annotations, lacking) else {},
    )


def _lacking(present: Mapping[str, str] | None, wanted: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in wanted.items() if key not in (present or {})}


def _fits(present: Mapping[str, str] | None, added: Mapping[str, str]) -> bool:
    """Tell whether the API server takes all annotations; one over the bound would deny the pod."""
    return _bytes(present or {}) + _bytes(added) <= MAX_ANNOTATION_BYTES


def _bytes(annotations: Mapping[str, str]) -> int:
    return len("".join((*annotations, *annotations.values())).encode("utf-8", "surrogatepass"))
