"""Make the plan of a capture from a request and the pods in the cluster."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from mldiagnostics import layout
from mldiagnostics.capture.model import Tracers

from mldiagnostics_api.captures.destinations import Destination, common_directory, destinations, workload_key
from mldiagnostics_api.captures.not_found import (
    absent_pods,
    no_pod_matches,
    nothing_found,
    similar,
    too_many_targets,
)
from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget, SkippedTarget
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import CaptureRequest
from mldiagnostics_api.captures.run_target import replaced
from mldiagnostics_api.captures.schedule import schedule
from mldiagnostics_api.captures.targets import TargetCandidate, TooManyTargets, candidates
from mldiagnostics_api.names import CAPTURE_REASON_ANNOTATION, RefusalReason, SkipReason
from mldiagnostics_api.reports.reported_profilers import ReportedProfilers
from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.workloads.kinds import Object
from mldiagnostics_api.workloads.owners import ObjectReference, owner_chain, run_of
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.positions import unconfirmed

_MOST_HINTS: Final = 10
"""Suggestions per plan: each takes 20 ms among a thousand names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodInventory:
    """The objects in the cluster that a request refers to."""

    pods: Collection[PodView] = ()
    pod_selector: str | None = None
    """Label selector of the pods, to read them again; None if they were requested by name."""
    workload: Object | None = None
    """The object that the request's workload refers to."""
    owners: Mapping[ObjectReference, Object | None] = field(default_factory=dict)
    """All owners of the pods, see `owners.missing_owners`; their specs as `owners.reduced` returns them."""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods' namespace."""
    reported: Mapping[str, ReportedProfilers] = field(default_factory=dict)
    """Profiler servers that the hosts reported, by pod uid."""
    nearby: Collection[str] = ()
    """Names of the first objects of the requested kind in the namespace, for suggestions."""


def make_plan(
    connection: MLDiagnosticsConnection,
    request: CaptureRequest,
    inventory: PodInventory,
    *,
    policy: Policy,
    cluster: str,
    now: datetime,
    attempt: int = 1,
) -> CapturePlan | CaptureRefusal:
    """Plan a capture: its targets, times and destinations.

    The same input gives the same plan, in any order of the pods. Every pod in the inventory is a target, skipped,
    excluded by the filter, or replaced by a newer pod of the same position (unless the request names it).

    Args:
        connection: The object.
        request: The same, checked against the policy.
        inventory: The objects that it refers to.
        policy: Limits of the administrator.
        cluster: Name of the cluster, part of run ids.
        now: Current time with time zone.
        attempt: 1, or higher after a restart.

    Returns:
        The plan, or the refusal.
    """
    if _is_replaced(request, inventory.workload):
        return CaptureRefusal(RefusalReason.RUN_ENDED, replaced(request.description, request.run, request.uids))
    pods = {pod.uid: pod for pod in _pods_of(request, inventory)}
    if not pods:
        return nothing_found(request, workload=inventory.workload, nearby=inventory.nearby)
    missing = _missing_pods(request, pods.values(), inventory.nearby)
    chains = {uid: owner_chain(pod.controller, inventory.owners.get) for uid, pod in pods.items()}
    runs = {uid: pod.lone_run or run_of(chains[uid]) for uid, pod in pods.items()}
    unconfirmed_pods = unconfirmed(pods.values(), chains)
    try:
        chosen = candidates(
            [pod for pod in pods.values() if pod.uid not in unconfirmed_pods],
            workload=lambda pod: workload_key(runs[pod.uid]),
            policy=policy,
            target_filter=request.target_filter,
            port=request.port,
            reported=inventory.reported,
            superseded=bool(request.pods),
            spares_command_buffers=bool(_tracers(connection.spec.trigger_capture).device)
            and CAPTURE_REASON_ANNOTATION in connection.metadata.annotations,
        )
    except TooManyTargets:
        return too_many_targets(request)
    forged = tuple(_unconfirmed(pods[uid], message) for uid, message in unconfirmed_pods.items())
    if not chosen and not missing and not forged:
        return no_pod_matches(request, len(pods))
    by_pod = destinations(
        ((candidate.pod, runs[candidate.pod.uid]) for candidate in chosen),
        root=request.root,
        explicit=request.explicit,
        cluster=cluster,
        namespace_labels=inventory.namespace_labels,
    )
    targets = tuple(_planned(c, by_pod[c.pod.uid]) for c in chosen if c.skip is None)
    skipped = (*missing, *(_skipped(c, c.skip, by_pod[c.pod.uid]) for c in chosen if c.skip is not None), *forged)
    # The right to create pods must not be the right to fail the captures of a workload.
    uncounted = 0 if request.pods or not chosen else len(forged)
    return _plan(connection, request, policy, targets, skipped, uncounted=uncounted, now=now, attempt=attempt)


def _plan(
    connection: MLDiagnosticsConnection,
    request: CaptureRequest,
    policy: Policy,
    targets: tuple[PlannedTarget, ...],
    skipped: tuple[SkippedTarget, ...],
    *,
    uncounted: int,
    now: datetime,
    attempt: int,
) -> CapturePlan | CaptureRefusal:
    trigger = connection.spec.trigger_capture
    metadata = connection.metadata
    times = schedule(trigger, request.duration_ms, targets=len(targets), now=now)
    if isinstance(times, CaptureRefusal):
        return times
    return CapturePlan(
        session=layout.retry_session(
            layout.session_id(name=metadata.name, uid=metadata.uid, requested=trigger.session_id), attempt
        ),
        attempt=attempt,
        targets=targets,
        skipped=skipped,
        needed=needed_of(trigger, len(targets) + len(skipped) - uncounted),
        uncounted=uncounted,
        duration_ms=request.duration_ms,
        lead_ms=times.lead_ms,
        planned_start=times.start,
        deadline=times.deadline,
        tracers=_tracers(trigger),
        delivery=request.delivery,
        recording=request.recording,
        allow_old_server=bool(trigger.allow_old_server),
        dry_run=bool(trigger.dry_run),
        max_trace_bytes=policy.max_trace_bytes,
        output=common_directory((target.directory for target in targets), root=request.root),
    )


def needed_of(trigger: TriggerCapture, total: int) -> int:
    """Return how many of `total` targets success needs: `minimumCaptured`, or all."""
    minimum = trigger.minimum_captured
    if isinstance(minimum, int):
        return minimum
    percent = 100 if minimum is None else int(minimum.removesuffix("%"))
    return max(1, -(-total * percent // 100))


def _tracers(trigger: TriggerCapture) -> Tracers:
    given = trigger.tracers.model_dump() if trigger.tracers else {}
    return Tracers(**{name: level for name, level in given.items() if level is not None})


def _is_replaced(request: CaptureRequest, workload: Object | None) -> bool:
    """Return whether another workload has the name of the run's deleted one."""
    return bool(request.uids) and workload is not None and workload["metadata"]["uid"] not in request.uids


def _pods_of(request: CaptureRequest, inventory: PodInventory) -> Iterable[PodView]:
    """Return the pods of the workload by owner, because any pod can have its labels."""
    if request.workload is None:
        return [pod for pod in inventory.pods if not request.uids or pod.uid in request.uids]
    if inventory.workload is None:
        return ()
    uid = inventory.workload["metadata"]["uid"]
    return [
        pod
        for pod in inventory.pods
        if any(owner["metadata"]["uid"] == uid for owner in owner_chain(pod.controller, inventory.owners.get))
    ]


def _missing_pods(
    request: CaptureRequest, pods: Iterable[PodView], nearby: Collection[str]
) -> tuple[SkippedTarget, ...]:
    """Return the requested pods that do not exist."""
    names = absent_pods(request.pods, (pod.name for pod in pods))
    hints = {name: similar(name, nearby) for name in names[:_MOST_HINTS]}
    return tuple(
        SkippedTarget(
            pod=name,
            reason=SkipReason.NOT_FOUND,
            message=f"pod {name}: not found in namespace {request.namespace}{hints.get(name, '')}",
        )
        for name in names
    )


def _unconfirmed(pod: PodView, message: str) -> SkippedTarget:
    return SkippedTarget(
        pod=pod.name, uid=pod.uid, node=pod.node, reason=SkipReason.NOT_CONFIRMED, message=f"pod {pod.name}: {message}"
    )


def _planned(candidate: TargetCandidate, destination: Destination) -> PlannedTarget:
    pod = candidate.pod
    if candidate.port is None:
        raise ValueError(f"pod {pod.name}: no profiler port")
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
        directory=destination.directory,
        run_id=destination.run_id,
        server_ok=candidate.server_ok,
        runs_command_buffers=candidate.runs_command_buffers,
        ready=pod.ready,
    )


def _skipped(candidate: TargetCandidate, reason: SkipReason, destination: Destination) -> SkippedTarget:
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
        directory=destination.directory,
        run_id=destination.run_id,
    )
