"""What to say when something is not there: what was looked for, and what exists nearby."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.request import CaptureRefusal, CaptureRequest
from mldiagnostics_api.workloads import Object


def absent_pods(named: Iterable[str], present: Iterable[str]) -> tuple[str, ...]:
    """List the names that no pod has, in the order they were given."""
    existing = frozenset(present)
    return tuple(name for name in named if name not in existing)


def nothing_found(request: CaptureRequest, *, workload: Object | None, nearby: Collection[str]) -> CaptureRefusal:
    """Say why a request has no pod at all; waiting may bring some.

    `nearby` are names of objects of the sought kind in the namespace.
    """
    if request.pods:
        hint = similar(request.pods[0], nearby)
        return CaptureRefusal(RefusalReason.PODS_NOT_FOUND, f"not found: {request.sought}{hint}", transient=True)
    if request.workload and workload is None:
        hint = similar(request.workload_name, nearby)
        return CaptureRefusal(
            RefusalReason.WORKLOAD_NOT_FOUND, f"{request.sought} does not exist{hint}", transient=True
        )
    if request.workload:
        return CaptureRefusal(RefusalReason.NO_POD_MATCHES, f"{request.sought} has no pods", transient=True)
    exist = f"; {len(nearby)} other pods exist there" if nearby else "; none exist there"
    return CaptureRefusal(RefusalReason.NO_POD_MATCHES, f"not found: {request.sought}{exist}", transient=True)


def similar(name: str, nearby: Collection[str]) -> str:
    """Name what may have been meant, closest first and at most three, as the end of a sentence."""
    if not nearby:
        return "; none exist there"
    close = get_close_matches(name, sorted(nearby), n=3, cutoff=0.5)
    return f"; did you mean {', '.join(close)}?" if close else f"; there are {', '.join(sorted(nearby)[:3])}"
