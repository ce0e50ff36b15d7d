"""From a request and the pods that were found to a plan of the capture, or to the reason why there is none."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from mldiagnostics import layout
from mldiagnostics.capture.model import Delivery, Tracers

from mldiagnostics_api.destinations import Destination, common_directory, homes, workload_key
from mldiagnostics_api.location import Location
from mldiagnostics_api.names import RefusalReason, SkipReason
from mldiagnostics_api.not_found import absent_pods, nothing_found, similar
from mldiagnostics_api.owners import ObjectReference, owner_chain, run_of
from mldiagnostics_api.pods import PodView
from mldiagnostics_api.policy import Policy
from mldiagnostics_api.request import CaptureRefusal, CaptureRequest, check
from mldiagnostics_api.schedule import schedule
from mldiagnostics_api.targets import TRANSIENT, TargetCandidate, candidates
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.workloads import Object

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_HINTS: Final = 10
"""Comparing a name with a thousand others takes 20 ms: a thousand absent names must not cost a plan 20 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodInventory:
    """What the cluster holds of what a request looks for."""

    pods: Collection[PodView] = ()
    workload: Object | None = None
    """The object that the request's workload names."""
    owners: Mapping[ObjectReference, Object | None] = field(default_factory=dict)
    """Every owner on the way up from the pods (`owners.missing_owners` says which)."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods' namespace."""
    nearby: Collection[str] = ()
    """Names of objects of the sought kind that exist in the namespace; for messages when something is not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTarget:
    """One profiler to dial. `host` is the pod's IP when the plan was made."""

    pod: str
    namespace: str
    uid: str
    node: str
    rank: int
    slice: int | None
    local_rank: int | None
    host: str
    port: int
    stem: str
    """Name of the trace file, unique in the capture."""
    directory: Location
    """Log directory: the trace goes to `plugins/profile/<session>/` below it."""
    run_id: str | None
    ready: bool = True
    """Whether the pod says it is. One that does not is dialled all the same, but not before waiting is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedTarget:
    """A chosen pod that is not dialled, and why; a pod that does not exist has a name only."""

    pod: str
    uid: str = ""
    node: str = ""
    rank: int | None = None
    slice: int | None = None
    local_rank: int | None = None
    port: int | None = None
    reason: SkipReason
    message: str
    directory: Location | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturePlan:
    """Everything that is decided before the first packet."""

    session: str
    attempt: int
    targets: tuple[PlannedTarget, ...]
    skipped: tuple[SkippedTarget, ...]
    needed: int
    """Targets that must be captured and stored for success."""
    duration_ms: int
    lead_ms: int
    planned_start: datetime
    deadline: datetime
    tracers: Tracers
    delivery: Delivery
    allow_old_server: bool
    dry_run: bool
    max_trace_bytes: int
    output: Location
    """The log directory, or with several runs what their directories have in common."""

    @property
    def total(self) -> int:
        """All targets, skipped ones included."""
        return len(self.targets) + len(self.skipped)

    @property
    def start_ns(self) -> int | None:
        """The common start in Unix nanoseconds; None: at once."""
        return (self.planned_start - _EPOCH) // timedelta(microseconds=1) * 1000 if self.lead_ms else None

    @property
    def directories(self) -> tuple[Location, ...]:
        """The log directories of the targets, one for each run."""
        return tuple(dict.fromkeys(target.directory for target in self.targets))

    @property
    def may_grow(self) -> bool:
        """Whether waiting may turn a skipped target into one that can be dialled, or make one ready."""
        return any(target.reason in TRANSIENT for target in self.skipped) or not all(t.ready for t in self.targets)


def make_plan(
    connection: MLDiagnosticsConnection,
    found: PodInventory,
    *,
    policy: Policy,
    cluster: str,
    now: datetime,
    attempt: int = 1,
) -> CapturePlan | CaptureRefusal:
    """Decide what is captured, when, and where it goes.

    `cluster` is the cluster's name, part of run ids; `now` is aware. The same input gives the same plan, in whatever
    order the pods come. Every pod found is a target, skipped, left out by the narrowing, or,
    unless it was named, superseded by another in its place.
    """
    request = check(connection, policy)
    if isinstance(request, CaptureRefusal):
        return request
    pods = {pod.uid: pod for pod in _belonging(request, found)}
    if not pods:
        return nothing_found(request, workload=found.workload, nearby=found.nearby)
    absent = absent_pods(request.pods, (pod.name for pod in pods.values()))
    hints = {name: similar(name, found.nearby) for name in absent[:_MOST_HINTS]}
    missing = tuple(_absent(name, request, hints.get(name, "")) for name in absent)

    runs = {uid: pod.lone_run or run_of(owner_chain(pod.controller, found.owners.get)) for uid, pod in pods.items()}
    trigger = connection.spec.trigger_capture
    chosen = candidates(
        pods.values(),
        workload=lambda pod: workload_key(runs[pod.uid]),
        policy=policy,
        narrowing=request.narrowing,
        port=trigger.capture_port,
        superseded=bool(request.pods),
    )
    if not chosen and not missing:
        return CaptureRefusal(
            RefusalReason.NO_POD_MATCHES,
            f"{request.sought}: {len(pods)} pods exist, none in the chosen ranks, slices, nodes or replicatedJob",
            transient=True,
        )
    home = homes(
        ((candidate.pod, runs[candidate.pod.uid]) for candidate in chosen),
        root=request.root,
        explicit=request.explicit,
        cluster=cluster,
        namespace_labels=found.namespace_labels,
    )
    targets = tuple(_planned(c, home[c.pod.uid]) for c in chosen if c.skip is None)
    skipped = (*missing, *(_skipped(c, c.skip, home[c.pod.uid]) for c in chosen if c.skip is not None))
    return _plan(connection, request, policy, targets, skipped, now=now, attempt=attempt)


def _plan(
    connection: MLDiagnosticsConnection,
    request: CaptureRequest,
    policy: Policy,
    targets: tuple[PlannedTarget, ...],
    skipped: tuple[SkippedTarget, ...],
    *,
    now: datetime,
    attempt: int,
) -> CapturePlan | CaptureRefusal:
    trigger = connection.spec.trigger_capture
    metadata = connection.metadata
    times = schedule(trigger, request.duration_ms, dialled=len(targets), now=now)
    if isinstance(times, CaptureRefusal):
        return times
    tracers = trigger.tracers
    return CapturePlan(
        session=layout.retry_session(
            layout.session_id(name=metadata.name, uid=metadata.uid, requested=trigger.session_id), attempt
        ),
        attempt=attempt,
        targets=targets,
        skipped=skipped,
        needed=needed_of(trigger, len(targets) + len(skipped)),
        duration_ms=request.duration_ms,
        lead_ms=times.lead_ms,
        planned_start=times.start,
        deadline=times.deadline,
        tracers=Tracers(
            **{name: level for name, level in (tracers.model_dump() if tracers else {}).items() if level is not None}
        ),
        delivery=request.delivery,
        allow_old_server=bool(trigger.allow_old_server),
        dry_run=bool(trigger.dry_run),
        max_trace_bytes=policy.max_trace_bytes,
        output=common_directory((target.directory for target in targets), root=request.root),
    )


def needed_of(trigger: TriggerCapture, total: int) -> int:
    """Tell how many of `total` targets must be captured for success: `minimumCaptured`, all of them if absent."""
    minimum = trigger.minimum_captured
    if isinstance(minimum, int):
        return minimum
    percent = 100 if minimum is None else int(minimum.removesuffix("%"))
    return max(1, -(-total * percent // 100))


def _belonging(request: CaptureRequest, found: PodInventory) -> Iterable[PodView]:
    """Keep the pods that are meant; labels can be put on any pod, owners cannot."""
    if request.workload is None:
        return found.pods
    if found.workload is None:
        return ()
    uid = found.workload["metadata"]["uid"]
    return [
        pod
        for pod in found.pods
        if any(owner["metadata"]["uid"] == uid for owner in owner_chain(pod.controller, found.owners.get))
    ]


def _absent(name: str, request: CaptureRequest, hint: str) -> SkippedTarget:
    message = f"namespace {request.namespace} has no pod {name}{hint}"
    return SkippedTarget(pod=name, reason=SkipReason.NOT_FOUND, message=message)


def _planned(candidate: TargetCandidate, home: Destination) -> PlannedTarget:
    pod = candidate.pod
    if candidate.port is None:
        raise ValueError(f"pod {pod.name} has no port to dial")
    return PlannedTarget(
        pod=pod.name,
        namespace=pod.namespace,
        uid=pod.uid,
        node=pod.node,
        rank=candidate.rank,
        slice=candidate.slice,
        local_rank=candidate.local_rank,
        host=pod.ip,
        port=candidate.port,
        stem=layout.file_stem(pod.name, candidate.local_rank),
        directory=home.directory,
        run_id=home.run_id,
        ready=pod.ready,
    )


def _skipped(candidate: TargetCandidate, reason: SkipReason, home: Destination) -> SkippedTarget:
    return SkippedTarget(
        pod=candidate.pod.name,
        uid=candidate.pod.uid,
        node=candidate.pod.node,
        rank=candidate.rank,
        slice=candidate.slice,
        local_rank=candidate.local_rank,
        port=candidate.port,
        reason=reason,
        message=candidate.message,
        directory=home.directory,
        run_id=home.run_id,
    )
