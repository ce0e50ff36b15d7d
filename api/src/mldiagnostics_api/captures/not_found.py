"""Refusals of requests that find no or too many pods, with similar names."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Final

from mldiagnostics.text.counts import counted

from mldiagnostics_api.captures.refusal import CaptureRefusal
from mldiagnostics_api.captures.request import CaptureRequest
from mldiagnostics_api.captures.targets import MAX_TARGETS
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.workloads.kinds import Object

MAX_NEARBY: Final = 1000
"""Names among which similar ones are searched; a search takes 20 ms."""


def absent_pods(named: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    """Return the names that no pod has, in the given order."""
    existing = frozenset(present)
    return tuple(name for name in named if name not in existing)


def nothing_found(request: CaptureRequest, *, workload: Object | None, nearby: Collection[str]) -> CaptureRefusal:
    """Return the refusal of a request that has no pods; it is transient.

    Args:
        request: The request.
        workload: The object that the request's workload names; None if it does not exist.
        nearby: Names of the objects of the requested kind in the namespace.
    """
    if request.pods:
        hint = similar(request.pods[0], nearby)
        return CaptureRefusal(RefusalReason.PODS_NOT_FOUND, f"{request.description}: not found{hint}", transient=True)
    if request.workload and workload is None:
        hint = similar(request.workload_name, nearby)
        return CaptureRefusal(
            RefusalReason.WORKLOAD_NOT_FOUND, f"{request.description}: not found{hint}", transient=True
        )
    if request.workload:
        return CaptureRefusal(RefusalReason.NO_POD_MATCHES, f"{request.description}: has no pods", transient=True)
    others = f"{MAX_NEARBY} or more other pods" if len(nearby) >= MAX_NEARBY else counted(len(nearby), "other pod")
    others = f"; the namespace has {others if nearby else 'none'}"
    return CaptureRefusal(RefusalReason.NO_POD_MATCHES, f"{request.description}: not found{others}", transient=True)


def no_pod_matches(request: CaptureRequest, pods: int) -> CaptureRefusal:
    """Return the refusal of a filter that matches no pod; it is transient."""
    return CaptureRefusal(
        RefusalReason.NO_POD_MATCHES,
        f"{request.description}: none of {counted(pods, 'pod')} matches ranks, slices, nodes and replicatedJob",
        transient=True,
    )


def too_many_targets(request: CaptureRequest) -> CaptureRefusal:
    """Return the refusal of a request with more targets than a capture may have."""
    return CaptureRefusal(
        RefusalReason.TOO_MANY_TARGETS,
        f"{request.description}: more than {MAX_TARGETS} targets; select fewer pods with podName or target.selector",
    )


def similar(name: str, nearby: Collection[str]) -> str:
    """Return a suggestion of up to three names, as the end of a sentence."""
    if not nearby:
        return "; the namespace has none"
    close = get_close_matches(name, sorted(nearby), n=3, cutoff=0.5)
    return f"; did you mean {', '.join(close)}?" if close else f"; the namespace has {', '.join(sorted(nearby)[:3])}"
