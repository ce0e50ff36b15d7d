"""The verdict on a capture: success, one reason, one sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.model import Reason, TargetState
from mldiagnostics.text.counts import counted_of
from mldiagnostics_api import names
from mldiagnostics_api.v1alpha1 import CaptureDiagnosis

from mldiagnostics_operator.captures.outcomes import count, summary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.captures.plan import CapturePlan

    from mldiagnostics_operator.captures.outcomes import TargetOutcome

_RUNS: Final = 16
"""Runs of one capture that get its findings."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a capture ended; `reason` is that of the condition `Complete`."""

    succeeded: bool
    reason: str
    message: str


def judge(outcomes: Sequence[TargetOutcome], *, needed: int, uncounted: int = 0) -> Verdict:
    """Return the verdict on a capture of which `needed` targets had to be captured.

    If all other targets have the same reason, it is the reason of the capture.

    Args:
        outcomes: The outcomes of targets and of skipped pods.
        needed: Targets that must be captured.
        uncounted: Pods among them that no controller confirms; any pod can claim a place in a workload.
    """
    states = count(outcomes)
    captured = states[TargetState.CAPTURED]
    message = summary(outcomes, uncounted=uncounted)
    if captured >= needed:
        whole = captured == len(outcomes) - uncounted
        reason = names.CompleteReason.SUCCEEDED if whole else names.CompleteReason.PARTLY_SUCCEEDED
        return Verdict(succeeded=True, reason=str(reason), message=message)
    causes = {outcome.reason for outcome in outcomes if outcome.state is not TargetState.CAPTURED}
    if causes & {str(Reason.INTERRUPTED), str(Reason.STORE_NOT_SHARED)}:
        reason = names.CompleteReason.INTERRUPTED
    elif len(causes) == 1:
        return Verdict(succeeded=False, reason=causes.pop(), message=f"{message}; at least {needed} must be captured")
    else:
        reason = names.CompleteReason.TOO_FEW_CAPTURED if captured else names.CompleteReason.NOTHING_CAPTURED
    return Verdict(succeeded=False, reason=str(reason), message=f"{message}; at least {needed} must be captured")


def cancelled(outcomes: Sequence[TargetOutcome], total: int) -> Verdict:
    """Return the verdict on a cancelled capture: it failed, even if traces are stored."""
    stored = sum(outcome.stored for outcome in outcomes)
    message = f"cancelled by spec.cancel; traces of {counted_of(stored, total, 'target')} are stored"
    return Verdict(succeeded=False, reason=str(names.CompleteReason.CANCELLED), message=message)


def pending_diagnosis(plan: CapturePlan, outcomes: Sequence[TargetOutcome]) -> CaptureDiagnosis | None:
    """Return the diagnosis that a capture waits for; None without a stored trace."""
    if not any(outcome.stored for outcome in outcomes):
        return None
    runs = sorted({target.run_id for target in plan.targets if target.run_id})
    return CaptureDiagnosis(state="Pending", summary="pending", runs=runs[:_RUNS] or None)


def dry_run(targets: int, total: int) -> Verdict:
    """Return the verdict on a dry run, which succeeds even without targets."""
    message = f"dry run: {counted_of(targets, total, 'target')} would be captured"
    return Verdict(succeeded=True, reason=str(names.CompleteReason.DRY_RUN), message=message)
