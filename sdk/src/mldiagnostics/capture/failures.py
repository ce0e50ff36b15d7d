"""Failures of targets: one reason and one message for each.

Messages appear in `status.results[].message`; they are `<target>: <problem>; <action>`.
"""

from __future__ import annotations

from dataclasses import dataclass

from mldiagnostics.capture.connectivity import Connectivity
from mldiagnostics.capture.messages import UNWRITABLE_ROOT
from mldiagnostics.capture.model import LEAST_PROGRESS_BYTES, Outcome, Reason, ServerProbe, Target, TargetState
from mldiagnostics.errors import (
    AlreadyStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)

_STORE_REASONS: dict[type[StoreError], Reason] = {
    AlreadyStored: Reason.FILE_EXISTS,
    StoreNotFound: Reason.STORE_MISSING,
    StoreForbidden: Reason.STORE_FORBIDDEN,
    StoreUnreachable: Reason.STORE_UNREACHABLE,
    StoreFull: Reason.STORE_FULL,
}


@dataclass(frozen=True, slots=True)
class StoreFailure:
    """The last error of a store; `permanent` if a retry cannot help."""

    reason: Reason
    message: str
    permanent: bool

    @classmethod
    def of(cls, error: StoreError) -> StoreFailure:
        """Return the failure for a store's error."""
        reasons = (reason for kind, reason in _STORE_REASONS.items() if isinstance(error, kind))
        reason = next(reasons, Reason.STORE_ERROR)
        return cls(reason, str(error), permanent=reason is Reason.FILE_EXISTS)


class TargetFailed(Exception):
    """A target ended without a stored trace."""

    def __init__(self, reason: Reason, message: str, *, state: TargetState = TargetState.FAILED) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.state = state

    def outcome(self, target: Target, server: ServerProbe | None) -> Outcome:
        """Return the outcome of the target."""
        return Outcome(target, self.state, self.reason, self.message, server=server)


def cancelled() -> TargetFailed:
    """Return the failure of a target that was cancelled without a trace."""
    return TargetFailed(
        Reason.CANCELLED,
        "the capture was cancelled before the trace of the target had arrived",
        state=TargetState.CANCELLED,
    )


def may_deadlock(target: Target) -> TargetFailed:
    """Return the failure of an old server that may freeze its process."""
    return TargetFailed(
        Reason.SERVER_MAY_DEADLOCK,
        f"{target.address}: not captured, because the profiler server has no GetSnapshot (jaxlib < 0.9?) and may "
        "freeze its process without TensorFlow; upgrade jaxlib, or allow old servers",
        state=TargetState.SKIPPED,
    )


def probe_failed(target: Target, *, code: str, details: str, connectivity: Connectivity) -> TargetFailed:
    """Return the failure of a probe without a response.

    `connectivity` is the result of a TCP connection after the probe.
    """
    address = target.address
    if connectivity is Connectivity.REFUSED:
        return TargetFailed(
            Reason.NOTHING_LISTENS,
            f"{address}: nothing listens on this port; call jax.profiler.start_server({target.port}) in the process, "
            "or use the port that it serves",
        )
    if connectivity is Connectivity.UNKNOWN_NAME:
        return TargetFailed(
            Reason.UNREACHABLE,
            f"{address}: host name {target.host!r} cannot be resolved; check its spelling and the DNS",
        )
    if connectivity is Connectivity.NO_ROUTE:
        return TargetFailed(
            Reason.UNREACHABLE, f"{address}: no route to the host; check that the host runs and has this address"
        )
    if connectivity is Connectivity.NO_ANSWER:
        return TargetFailed(
            Reason.UNREACHABLE,
            f"{address}: the connection timed out; check that the host runs and that network policies allow it",
        )
    if code == "DEADLINE_EXCEEDED":
        return TargetFailed(
            Reason.SILENT,
            f"{address}: accepts connections but sends no response; check that the process is not stopped and that "
            "the port is the profiler's",
        )
    return not_a_profiler(target, details or code)


def not_a_profiler(target: Target, details: str) -> TargetFailed:
    """Return the failure of a server that is not a profiler server."""
    return TargetFailed(
        Reason.NOT_A_PROFILER,
        f"{target.address}: not a profiler server ({details}); use the port of jax.profiler.start_server",
    )


def is_busy(*, code: str, details: str) -> bool:
    """Return whether another profiling session runs in the process."""
    return code == "ALREADY_EXISTS" or "profiling session active" in details


def continuous_profiling_active(target: Target) -> TargetFailed:
    """Return the failure of a process that records continuously."""
    return TargetFailed(
        Reason.CONTINUOUS_PROFILING_ACTIVE,
        f"{target.address}: its program records continuously (StartContinuousProfiling), and a process has one session "
        "at a time; capture with recording Past, which takes that recording, or stop it",
    )


def no_continuous_profiling(target: Target) -> TargetFailed:
    """Return the failure of a process that has recorded no past."""
    return TargetFailed(
        Reason.NO_CONTINUOUS_PROFILING,
        f"{target.address}: its program does not record continuously, so it has no past; start a recording in the "
        "process (StartContinuousProfiling, jaxlib >= 0.9), or capture with recording Now",
    )


def capture_failed(target: Target, *, code: str, details: str, root: str) -> TargetFailed:
    """Return the failure of a capture without a response.

    `root` is the directory in the request.
    """
    address = target.address
    if is_busy(code=code, details=details):
        return TargetFailed(
            Reason.BUSY,
            f"{address}: another profiling session ran in the process until the deadline; end that session "
            "(stop_trace, another capture, continuous profiling) and try again",
        )
    if code == "DEADLINE_EXCEEDED":
        return not_returned(target)
    if code in {"UNAVAILABLE", "CANCELLED"}:
        return TargetFailed(
            Reason.CONNECTION_LOST,
            f"{address}: the connection broke during the capture ({details}); check whether the process ended or "
            "restarted",
        )
    if code == "UNIMPLEMENTED":
        return not_a_profiler(target, details or code)
    if root == UNWRITABLE_ROOT and UNWRITABLE_ROOT.rpartition("/")[0] in details:
        return too_old(target)
    if root != UNWRITABLE_ROOT and code == "INTERNAL":
        return TargetFailed(
            Reason.WORKLOAD_CANNOT_WRITE,
            f"{target.stem}: its process could not write the trace to {root}: {details}; grant it write access, or use "
            "delivery Operator",
        )
    return TargetFailed(Reason.SERVER_ERROR, f"{address}: the profiler server failed: {code}: {details}")


def too_old(target: Target) -> TargetFailed:
    """Return the failure of a server that cannot return a trace in its response."""
    return TargetFailed(
        Reason.SERVER_TOO_OLD,
        f"{target.address}: the profiler server cannot return a trace in its response (jaxlib < 0.7.2?); upgrade "
        "jaxlib, or use a gs:// location that the process may write to",
    )


def not_returned(target: Target) -> TargetFailed:
    """Return the failure of a response that was not complete by the deadline."""
    return TargetFailed(
        Reason.SLOW,
        f"{target.address}: did not return its trace by the deadline; record for a shorter time or at lower tracer "
        "levels, or set a later deadline",
    )


def stalled(target: Target, *, period_s: float) -> TargetFailed:
    """Return the failure of a response that arrived too slowly."""
    return TargetFailed(
        Reason.SLOW,
        f"{target.address}: sent less than {LEAST_PROGRESS_BYTES // 1024} KiB of its trace in {period_s:g} s; check "
        "the network and the process, then try again, or use delivery Workload",
    )


def too_large(target: Target, *, size: int, limit: int) -> TargetFailed:
    """Return the failure of a trace that is over the limit."""
    return TargetFailed(
        Reason.TRACE_TOO_LARGE,
        f"{target.stem}: the trace has {size} bytes, more than the limit of {limit}; record for a shorter time or at "
        "lower tracer levels, or use delivery Workload",
    )


def no_memory(target: Target, *, size: int, waited_s: float) -> TargetFailed:
    """Return the failure of a trace that waited for memory until the deadline."""
    return TargetFailed(
        Reason.INSUFFICIENT_MEMORY,
        f"{target.stem}: the trace of {size} bytes was recorded but not read, because other traces used the memory "
        f"until the deadline ({waited_s:.0f} s); set a later deadline, or capture fewer hosts at a time",
    )


def empty(target: Target) -> TargetFailed:
    """Return the failure of a trace without events."""
    return TargetFailed(
        Reason.EMPTY_TRACE,
        f"{target.stem}: the trace has no events; check that the process is running, and record for at least one step",
    )


def bad_response(target: Target, problem: str) -> TargetFailed:
    """Return the failure of a response that is not a trace."""
    return TargetFailed(
        Reason.BAD_ANSWER,
        f"{target.address}: the response is not a trace ({problem}); check that the port is the profiler's",
    )


def wrong_pod(target: Target, problem: str) -> TargetFailed:
    """Return the failure of an address that no longer belongs to the target."""
    return TargetFailed(Reason.WRONG_POD, f"{target.address}: not verified to be {target.stem}: {problem}")


def not_stored(target: Target, failure: StoreFailure | None) -> TargetFailed:
    """Return the failure of a recorded trace that was not stored.

    Without `failure` the store was too slow.
    """
    if failure:
        message = f"{target.stem}: the trace was recorded but not stored: {failure.message}"
        return TargetFailed(failure.reason, message)
    return TargetFailed(
        Reason.STORE_SLOW,
        f"{target.stem}: the trace was recorded but not stored by the deadline; set a later deadline, or use delivery "
        "Workload",
    )
