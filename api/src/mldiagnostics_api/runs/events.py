"""The events that lead from one status of a run to the next."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mldiagnostics_api.lifecycle.program import CRASH_LOOP
from mldiagnostics_api.names import MLRunPhase, RunConditionType
from mldiagnostics_api.runs.attempts import HELD_BACK
from mldiagnostics_api.v1alpha1 import MLRunStatus
from mldiagnostics_api.v1alpha1.shared import is_true

QUOTA_EXCEEDED: Final = "QuotaExceeded"
"""Reason of a run whose pods a quota refuses."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event about a run, for `kubectl describe`."""

    reason: str
    message: str
    warning: bool = False


def events_between(before: MLRunStatus, after: MLRunStatus) -> tuple[RunEvent, ...]:
    """Return the events that lead from one status to the next, in their order."""
    return tuple(_events(before, after))


def _events(before: MLRunStatus, after: MLRunStatus) -> Iterator[RunEvent]:
    workload = after.workload or "the run"
    if before.reason != "Queued" and after.reason == "Queued" and before.phase is not MLRunPhase.ACTIVE:
        yield RunEvent("Queued", after.message or "")
    if _becomes(before, after, RunConditionType.ADMITTED) and before.reason in HELD_BACK:
        yield RunEvent("Admitted", f"{workload} was admitted")
    if _becomes(before, after, RunConditionType.STARTED):
        yield RunEvent("Started", f"{workload} started")
    yield from _restart_events(before, after, workload)
    if before.reason != CRASH_LOOP and after.reason == CRASH_LOOP:
        yield RunEvent(CRASH_LOOP, after.message or "", warning=True)
    if before.phase is MLRunPhase.ACTIVE and after.reason in HELD_BACK:
        yield RunEvent("Suspended", after.message or "", warning=True)
    if before.reason != QUOTA_EXCEEDED and after.reason == QUOTA_EXCEEDED:
        yield RunEvent(QUOTA_EXCEEDED, after.message or "", warning=True)
    if _becomes(before, after, RunConditionType.COMPLETE):
        failed = after.phase is MLRunPhase.FAILED
        message = f": {after.message}" if after.message else ""
        yield RunEvent(str(after.phase), f"{workload} ended, {after.reason}{message}", warning=failed)


def _restart_events(before: MLRunStatus, after: MLRunStatus, workload: str) -> Iterator[RunEvent]:
    """Yield the event of a restart; a resumption has the event `Admitted`."""
    ended = after.attempts[-2] if after.attempts and len(after.attempts) > 1 else None
    if not before.phase or (after.attempt or 0) <= (before.attempt or 0) or (ended and ended.reason in HELD_BACK):
        return
    in_place = after.attempts is not None and bool(after.attempts[-1].container_restarts)
    why = ended.message if ended and in_place else after.message
    is_explained = bool(why) and after.phase is not MLRunPhase.COMPLETED
    yield RunEvent(
        "Restarted", f"{workload} is in attempt {after.attempt}" + (f": {why}" if is_explained else ""), warning=True
    )


def _becomes(before: MLRunStatus, after: MLRunStatus, kind: str) -> bool:
    return is_true(after.conditions, kind) and not is_true(before.conditions, kind)
