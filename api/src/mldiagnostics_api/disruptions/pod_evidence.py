"""Evidence of disruptions, read from pods and their containers."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from mldiagnostics_api.conditions import condition_of
from mldiagnostics_api.disruptions.causes import DisruptionCause as Cause
from mldiagnostics_api.disruptions.evidence import Evidence, explained, shortened
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.workloads.kinds import Object

CLOCK_SKEW: Final = timedelta(seconds=10)
"""Times of different machines that are closer than this are not ordered."""
_MAX_GRACE_S: Final = 2**63 // 10**9
"""The API server counts in nanoseconds of 64 bits; with a longer grace period, its deadline has no meaning."""

_Finding = tuple[Cause, datetime, str]

_TARGET_REASONS: Final = {
    "PreemptionByScheduler": Cause.PREEMPTION,
    "DeletionByPodGC": Cause.NODE_LOST,
    "EvictionByEvictionAPI": Cause.EVICTION,
    "DeletionByTaintManager": Cause.EVICTION,
    "DeletionByDeviceTaintManager": Cause.EVICTION,
}
"""Reasons of the condition DisruptionTarget; those of the kubelet differ by message."""
_KUBELET_MESSAGES: Final = {"node shutdown": Cause.NODE_SHUTDOWN, "preempted by Kubelet": Cause.PREEMPTION}
_POD_REASONS: Final = {
    "Preempting": Cause.PREEMPTION,
    "Terminated": Cause.NODE_SHUTDOWN,
    "NodeShutdown": Cause.NODE_SHUTDOWN,
    "NodeLost": Cause.NODE_LOST,
    "Evicted": Cause.EVICTION,
    "DeadlineExceeded": Cause.DEADLINE,
    "UnexpectedAdmissionError": Cause.START_FAILURE,
}
"""`status.reason` of a pod."""
_WITHOUT_RESULT: Final = frozenset({"ContainerStatusUnknown"})
"""The kubelet makes up the exit code of a container that it has not seen end."""
_UNSTARTED: Final = frozenset({"ContainerCannotRun", "StartError"})
_CANNOT_START: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "RunContainerError",
    }
)


def pod_evidence(pod: Object) -> Sequence[Evidence]:
    """Return why a pod and its containers ended or do not start.

    Empty if the pod shows no cause. The first of these counts, because each leads to the next: a failure of a
    container, a disruption by the cluster, a deletion. Containers that end after a disruption or deletion has begun
    ended because of it. Where the kubelet restarts containers in place, each failure counts, and so does the later end
    of the pod.
    """
    name, node = pod["metadata"]["name"], (pod.get("spec") or {}).get("nodeName") or ""
    outside = _disruption(pod) or _deletion(pod)
    failures = [each for each in _container_failures(pod) if outside is None or outside[1] - each[1] > CLOCK_SKEW]
    restarts = (pod.get("spec") or {}).get("restartPolicy") in ("Always", "OnFailure")
    end = None if failures and not restarts else outside or (None if failures else _start_failure(pod))
    findings = [*(failures if restarts else failures[:1]), end]
    subject = f"pod '{name}'"
    return [
        Evidence(cause=cause, time=time, subject=subject, detail=shortened(detail), node=node)
        for cause, time, detail in filter(None, findings)
    ]


def _disruption(pod: Object) -> _Finding | None:
    """Return the disruption that a component has announced on the pod."""
    status = pod.get("status") or {}
    target = condition_of(pod, "DisruptionTarget")
    if target is not None and target.holds and target.since:
        cause = _TARGET_REASONS.get(target.reason)
        if target.reason == "TerminationByKubelet":
            cause = next((cause for part, cause in _KUBELET_MESSAGES.items() if part in target.message), Cause.EVICTION)
        if cause:
            return cause, target.since, explained(target)
    terminated = condition_of(pod, "TerminationTarget")  # set by Kueue on pods of which it is the controller
    if terminated is not None and terminated.holds and terminated.since and "Preempted" in terminated.reason:
        return Cause.PREEMPTION, terminated.since, explained(terminated)
    reason, message = status.get("reason") or "", status.get("message") or ""
    cause = _POD_REASONS.get(reason)
    time = _last_change(pod)
    if cause and time:
        return cause, time, f"{reason}: {message}"
    return None


def _deletion(pod: Object) -> _Finding | None:
    metadata = pod["metadata"]
    deadline = optional_time(metadata.get("deletionTimestamp"))
    if deadline is None:
        return None
    grace = timedelta(seconds=min(metadata.get("deletionGracePeriodSeconds") or 0, _MAX_GRACE_S))
    return Cause.DELETED, deadline - grace, "was deleted; the API does not record by which user"


def _container_failures(pod: Object) -> Sequence[_Finding]:
    """Return the failures of containers, first of exceeded memory, then by time."""
    status = pod.get("status") or {}
    containers = chain(status.get("initContainerStatuses") or (), status.get("containerStatuses") or ())
    failures = chain.from_iterable(map(_terminations, containers))
    return sorted(failures, key=lambda failure: (failure[0] is not Cause.OUT_OF_MEMORY, *failure[1:]))


def _terminations(container: Mapping[str, Any]) -> Iterator[_Finding]:
    for state in (container.get("lastState") or {}, container.get("state") or {}):
        terminated = state.get("terminated") or {}
        code, reason, time = terminated.get("exitCode"), terminated.get("reason"), terminated.get("finishedAt")
        ended = optional_time(time)
        if ended is None or not code or reason in _WITHOUT_RESULT:
            continue
        name = container.get("name") or ""
        if reason == "OOMKilled":
            yield Cause.OUT_OF_MEMORY, ended, f"OOMKilled: container '{name}' exceeded its memory limit"
        elif reason in _UNSTARTED:
            yield Cause.START_FAILURE, ended, f"{reason}: container '{name}': {terminated.get('message') or ''}"
        else:
            message = terminated.get("message") or ""
            text = f"container '{name}' ended with exit code {code}{_signal(code)}"
            yield Cause.EXIT_CODE, ended, f"{text}: {message}" if message else text


def _signal(code: int) -> str:
    """Return the signal of an exit code as shells and the kubelet encode it."""
    try:
        return f" ({signal.Signals(code - 128).name})"
    except ValueError:
        return ""


def _start_failure(pod: Object) -> _Finding | None:
    """Return why a pod does not start: no node, or a container that cannot be created."""
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and not scheduled.holds and scheduled.reason == "Unschedulable" and scheduled.since:
        return Cause.SCHEDULING, scheduled.since, explained(scheduled)
    status = pod.get("status") or {}
    containers = chain(status.get("initContainerStatuses") or (), status.get("containerStatuses") or ())
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        since = scheduled.since if scheduled is not None else None
        if waiting.get("reason") in _CANNOT_START and since:
            return Cause.START_FAILURE, since, f"{waiting['reason']}: {waiting.get('message') or ''}"
    return None


def _last_change(pod: Object) -> datetime | None:
    """Return the last change of a condition, else the start of the pod."""
    status = pod.get("status") or {}
    changes = (optional_time(each.get("lastTransitionTime")) for each in status.get("conditions") or ())
    return max(filter(None, changes), default=optional_time(status.get("startTime")))
