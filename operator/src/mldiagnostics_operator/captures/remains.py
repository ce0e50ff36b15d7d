"""The remains of an attempt whose process has ended: traces, record, status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.capture.model import Delivery, Reason, TargetState

from mldiagnostics_operator.captures.outcomes import TargetOutcome, of_skip
from mldiagnostics_operator.captures.recovery import Holder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget
    from mldiagnostics_api.v1alpha1 import ConnectionStatus, TargetResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The remains of one attempt.

    The session's record is written before the intent. Where it is missing, this process reads other storage than the
    one that ended, such as the volume of its own pod, and an absent trace proves nothing.
    """

    stored: Sequence[TargetOutcome]
    """The traces in the storage of this process."""
    has_record: bool
    """Whether the session's record is there."""
    status: ConnectionStatus

    @property
    def traces(self) -> int:
        """The number of targets that are known to have a trace, wherever it is."""
        targets = self.status.targets
        return max(len(self.stored), (targets.captured if targets else None) or 0)

    @property
    def loss(self) -> str:
        """The loss of an attempt without a known trace, for the event of the next one."""
        if self.has_record:
            return "which had stored no trace"
        return f"which had reported no trace; the storage of {self._process} cannot be read here"

    def outcomes(self, plan: CapturePlan, reason: Reason) -> list[TargetOutcome]:
        """Return the outcome of every target; those without a trace end for the reason."""
        has_trace = {outcome.target for outcome in self.stored}
        return [
            *self.stored,
            *(self._without_trace(plan, target, reason) for target in plan.targets if target not in has_trace),
            *(of_skip(target) for target in plan.skipped if target not in has_trace),
        ]

    def _without_trace(self, plan: CapturePlan, target: PlannedTarget, reason: Reason) -> TargetOutcome:
        if self.has_record:
            return lost(target, reason)
        reported = self._reported(target)
        if reported is None:
            return _in_doubt(target, reason, self._process)
        if plan.delivery is Delivery.WORKLOAD:  # the pod has stored it, where neither process needs to read
            return TargetOutcome(
                target=target,
                state=TargetState.CAPTURED,
                reason=reported.reason,
                file=reported.file,
                bytes=reported.bytes,
            )
        message = (
            f"{target.pod}: the trace was stored, but {self._process} ended and its storage cannot be read here; let "
            "all replicas share the storage (volume.claim with ReadWriteMany, or a bucket) and capture again"
        )
        return TargetOutcome(
            target=target, state=TargetState.FAILED, reason=str(Reason.STORE_NOT_SHARED), message=message
        )

    def _reported(self, target: PlannedTarget) -> TargetResult | None:
        """Return the result of a target that the last status names as captured."""
        key = (target.uid, target.local_rank)
        results = (each for each in self.status.results or () if each.state is TargetState.CAPTURED)
        return next((each for each in results if (each.uid, each.local_rank) == key), None)

    @property
    def _process(self) -> str:
        return f"operator {Holder.parse(self.status.holder or '').pod or 'unknown'}"


def lost(target: PlannedTarget, reason: Reason) -> TargetOutcome:
    """Return the outcome of a target that has no trace: `Interrupted` or `Cancelled`."""
    message = {
        Reason.INTERRUPTED: "the operator's process ended during the capture; the trace was not stored and is lost",
        Reason.CANCELLED: "the capture was cancelled before a trace was stored",
    }[reason]
    return _without(target, reason, message)


def _in_doubt(target: PlannedTarget, reason: Reason, process: str) -> TargetOutcome:
    message = (
        f"{target.pod}: {process} ended during the capture and its storage cannot be read here; whether it stored the "
        "trace is not known"
    )
    return _without(target, reason, message)


def _without(target: PlannedTarget, reason: Reason, message: str) -> TargetOutcome:
    state = TargetState.CANCELLED if reason is Reason.CANCELLED else TargetState.FAILED
    return TargetOutcome(target=target, state=state, reason=str(reason), message=message)
