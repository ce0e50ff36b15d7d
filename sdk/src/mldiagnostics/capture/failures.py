"""Which failure is which: from what a server and the network said to one reason and a message that helps."""

from __future__ import annotations

from dataclasses import dataclass

from mldiagnostics.capture.connectivity import Connectivity
from mldiagnostics.capture.messages import HARMLESS_ROOT
from mldiagnostics.capture.model import Outcome, Reason, ServerProbe, Target, TargetState
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
    """What a store last complained of; `lasting` if trying again cannot help."""

    reason: Reason
    words: str
    lasting: bool

    @classmethod
    def of(cls, error: StoreError) -> StoreFailure:
        """Take from the error what is worth keeping."""
        reasons = (reason for kind, reason in _STORE_REASONS.items() if isinstance(error, kind))
        reason = next(reasons, Reason.STORE_ERROR)
        return cls(reason, str(error), lasting=reason is Reason.FILE_EXISTS)


class TargetFailed(Exception):
    """The end of one target without a stored trace: its state, its reason and what to do about it."""

    def __init__(self, reason: Reason, message: str, *, state: TargetState = TargetState.FAILED) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.state = state

    def outcome(self, target: Target, server: ServerProbe | None) -> Outcome:
        """Return the outcome that says so."""
        return Outcome(target, self.state, self.reason, self.message, server=server)


def cancelled() -> TargetFailed:
    """Return the verdict on a target whose recording was called off before there was anything to keep."""
    return TargetFailed(
        Reason.CANCELLED, "the capture was cancelled before anything was recorded", state=TargetState.CANCELLED
    )


def may_deadlock(target: Target) -> TargetFailed:
    """Return the verdict on an old server that nobody vouches for."""
    return TargetFailed(
        Reason.SERVER_MAY_DEADLOCK,
        f"the profiler server on {target.address} does not know GetSnapshot (jaxlib < 0.9?); without TensorFlow such a "
        "server freezes its process in the first capture. It was left alone: upgrade jaxlib, or allow old servers",
        state=TargetState.SKIPPED,
    )


def of_probe(target: Target, *, code: str, details: str, reach: Connectivity) -> TargetFailed:
    """Judge a probe that got no answer; `reach` is how far a plain connection came afterwards."""
    where = target.address
    if reach is Connectivity.REFUSED:
        return TargetFailed(
            Reason.NOTHING_LISTENS,
            f"nothing listens on {where}: call jax.profiler.start_server({target.port}) in the process, "
            "or give the port that it uses",
        )
    if reach is Connectivity.UNKNOWN_NAME:
        return TargetFailed(
            Reason.UNREACHABLE, f"the name {target.host} cannot be resolved: check its spelling and the DNS"
        )
    if reach is Connectivity.NO_ROUTE:
        return TargetFailed(
            Reason.UNREACHABLE, f"there is no route to {where}: does the host run, is the address its own?"
        )
    if reach is Connectivity.NO_ANSWER:
        return TargetFailed(
            Reason.UNREACHABLE, f"{where} did not answer: does the host run, do network policies let us through?"
        )
    if code == "DEADLINE_EXCEEDED":
        return TargetFailed(
            Reason.SILENT,
            f"{where} accepts connections and says nothing: is the process stopped, or is this another service's port?",
        )
    return not_a_profiler(target, details or code)


def not_a_profiler(target: Target, details: str) -> TargetFailed:
    """Return the verdict on something that speaks, but not as a profiler server."""
    return TargetFailed(
        Reason.NOT_A_PROFILER,
        f"what listens on {target.address} is no profiler server ({details}): "
        f"give the port of jax.profiler.start_server",
    )


def is_busy(*, code: str, details: str) -> bool:
    """Tell whether another profiling session holds the process; that passes."""
    return code == "ALREADY_EXISTS" or "profiling session active" in details


def of_capture(target: Target, *, code: str, details: str, root: str) -> TargetFailed:
    """Judge a capture that ended without an answer; `root` is where the server was told to write."""
    where = target.address
    if is_busy(code=code, details=details):
        return TargetFailed(
            Reason.BUSY,
            f"the process behind {where} was being profiled by somebody else until the deadline: "
            "end that session (stop_trace, another capture, continuous profiling) and try again",
        )
    if code == "RESOURCE_EXHAUSTED" and "larger than max" in details:
        return TargetFailed(
            Reason.TRACE_TOO_LARGE,
            f"the trace of {target.stem} is over the cap ({details}): record for a shorter time or at lower tracer "
            "levels, or let the workload write it (delivery Workload)",
        )
    if code == "DEADLINE_EXCEEDED":
        return TargetFailed(
            Reason.SLOW,
            f"{where} had not delivered its trace by the deadline: record for a shorter time, "
            "at lower tracer levels, or allow more time",
        )
    if code in {"UNAVAILABLE", "CANCELLED"}:
        return TargetFailed(
            Reason.CONNECTION_LOST,
            f"the connection to {where} broke during the capture ({details}): did the process end or restart?",
        )
    if code == "UNIMPLEMENTED":
        return not_a_profiler(target, details or code)
    if root == HARMLESS_ROOT and HARMLESS_ROOT.rpartition("/")[0] in details:
        return too_old(target)
    if root != HARMLESS_ROOT and code == "INTERNAL":
        return TargetFailed(
            Reason.WORKLOAD_CANNOT_WRITE,
            f"{target.stem} was to write its trace to {root} and could not: {details}. "
            "Give its process the right to, or use delivery Operator",
        )
    return TargetFailed(Reason.SERVER_ERROR, f"the profiler server on {where} failed: {code}: {details}")


def too_old(target: Target) -> TargetFailed:
    """Return the verdict on a server that was asked for the trace in its answer and does not know how."""
    return TargetFailed(
        Reason.SERVER_TOO_OLD,
        f"the profiler server on {target.address} cannot return a trace in its answer (jaxlib < 0.7.2?): "
        "upgrade it, or give a gs:// location that its process may write to",
    )


def stalled(target: Target) -> TargetFailed:
    """Return the verdict on an answer that began and did not go on."""
    return TargetFailed(
        Reason.SLOW,
        f"{target.address} began to deliver its trace and did not go on: is the network slow, the process stopped? "
        "Try again, record for a shorter time or at lower tracer levels",
    )


def empty(target: Target) -> TargetFailed:
    """Return the verdict on a trace without a single event."""
    return TargetFailed(
        Reason.EMPTY_TRACE,
        f"{target.stem} did nothing that the profiler records: is it running, was the capture long enough for a step?",
    )


def bad_answer(target: Target, fault: str) -> TargetFailed:
    """Return the verdict on bytes that are no trace."""
    return TargetFailed(
        Reason.BAD_ANSWER, f"the answer of {target.address} is not a trace ({fault}): is it really a profiler server?"
    )


def wrong_pod(target: Target, complaint: str) -> TargetFailed:
    """Return the verdict on an address that is not the chosen target's."""
    return TargetFailed(Reason.WRONG_POD, f"is {target.address} still {target.stem}? {complaint}")


def not_stored(target: Target, trouble: StoreFailure | None) -> TargetFailed:
    """Judge a trace that was recorded and not stored; without trouble it was its turn that came too late."""
    if trouble:
        message = f"the trace of {target.stem} was recorded and could not be stored: {trouble.words}"
        return TargetFailed(trouble.reason, message)
    return TargetFailed(
        Reason.STORE_SLOW,
        f"the trace of {target.stem} was recorded, but storing took until the deadline: "
        "allow more time, or let the workload write it (delivery Workload)",
    )
