"""The status of a capture, one method for each stage."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.model import Reason, TargetState
from mldiagnostics.text.counts import counted, counted_of
from mldiagnostics.text.terminal import printable
from mldiagnostics_api.names import ConditionType, Phase, ProgressReason
from mldiagnostics_api.v1alpha1 import CaptureResult, ConnectionStatus, StatusCondition, TargetCounts

from mldiagnostics_operator.captures.outcomes import count, results, skew

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from mldiagnostics_api.captures.plan import CapturePlan
    from mldiagnostics_api.v1alpha1 import CaptureDiagnosis

    from mldiagnostics_operator.captures.outcomes import TargetOutcome
    from mldiagnostics_operator.captures.verdict import Verdict

RESULTS_BYTES: Final = 224 * 1024
"""Bound of `results`: with the longest spec and its copy in kubectl's annotation, the object is below 512 KiB."""
_PROGRESS_BYTES: Final = 16 * 1024
"""Bound of `results` while the capture runs: about 50 targets, written at most every 5 s."""
_MESSAGE_LENGTH: Final = 4096
_NOT_STORED: Final = frozenset(
    str(reason) for reason in Reason if reason.startswith("Store") or reason is Reason.FILE_EXISTS
)

ConditionChange = tuple[ConditionType, str, str, str]
"""Type, status, reason and message of a condition."""


class StatusBuilder:
    """Builds the statuses of one object; each is whole and starts from the one before."""

    def __init__(self, previous: ConnectionStatus | None, *, generation: int, me: str) -> None:
        self._last = previous or ConnectionStatus()
        self._generation = generation
        self._me = me

    def waiting(self, reason: str, message: str, *, now: datetime) -> ConnectionStatus:
        """Return the status of a capture that waits."""
        return self._write(
            {"phase": Phase.PENDING, "message": message, "start_time": self._last.start_time or now},
            [(ConditionType.ACCEPTED, "False", reason, message)],
            now,
        )

    def running(self, plan: CapturePlan, *, now: datetime) -> ConnectionStatus:
        """Return the status that announces the intent, written before the first request."""
        message = f"capturing {subject(plan)} for {plan.duration_ms / 1000:g} s"
        ready = f"{counted_of(len(plan.targets), plan.total, 'target', 'are')} ready"
        return self._write(
            {
                "phase": Phase.RUNNING,
                "message": message,
                "start_time": self._last.start_time or now,
                "session_id": plan.session,
                "attempt": plan.attempt,
                "holder": self._me,
                "planned_start_time": plan.planned_start,
                "deadline": plan.deadline,
                "progress": f"0/{plan.total}",
                "targets": TargetCounts(
                    total=plan.total, captured=0, failed=0, skipped=len(plan.skipped) - plan.uncounted
                ),
                "bytes": None,
                "results": None,
            },
            [
                (ConditionType.ACCEPTED, "True", ProgressReason.ACCEPTED, ready),
                (ConditionType.CAPTURED, "False", ProgressReason.CAPTURING, message),
            ],
            now,
        )

    def progressed(self, outcomes: Iterable[TargetOutcome], plan: CapturePlan) -> ConnectionStatus:
        """Return the status with the targets that have ended, skipped ones included."""
        ended = list(outcomes)
        return self._write({**_numbers(ended, plan), "results": results(ended, max_bytes=_PROGRESS_BYTES)}, [], None)

    def refused(self, reason: str, message: str, *, now: datetime) -> ConnectionStatus:
        """Return the final status of a capture that recorded nothing."""
        return self._close(
            {"message": message},
            CaptureResult(status="Failed", error_message=_shown(message)),
            succeeded=False,
            changes=[
                (ConditionType.ACCEPTED, "False", reason, message),
                (ConditionType.COMPLETE, "True", reason, message),
            ],
            now=now,
        )

    def finished(
        self,
        plan: CapturePlan,
        outcomes: Sequence[TargetOutcome],
        verdict: Verdict,
        *,
        now: datetime,
        diagnosis: CaptureDiagnosis | None = None,
    ) -> ConnectionStatus:
        """Return the final status: numbers, verdict, results that fit, pending diagnosis."""
        selected = counted(plan.total, "target", "are")
        changes: list[ConditionChange] = [
            (ConditionType.ACCEPTED, "True", ProgressReason.ACCEPTED, f"{selected} selected")
        ]
        if not plan.dry_run:
            changes += [_captured(outcomes, plan.total), _stored(outcomes)]
        if diagnosis is not None:
            changes.append((ConditionType.DIAGNOSED, "Unknown", "Pending", "the traces wait for their diagnosis"))
        return self._close(
            {
                **_numbers(outcomes, plan),
                "message": verdict.message,
                "session_id": plan.session,
                "attempt": plan.attempt,
                "start_skew_milliseconds": _skew_ms(outcomes),
                "results": results(outcomes, max_bytes=RESULTS_BYTES),
                "diagnosis": diagnosis,
            },
            CaptureResult(
                status="Succeeded" if verdict.succeeded else "Failed",
                error_message=None if verdict.succeeded else _shown(verdict.message),
                output_location=str(plan.output),
            ),
            succeeded=verdict.succeeded,
            changes=[*changes, (ConditionType.COMPLETE, "True", verdict.reason, verdict.message)],
            now=now,
        )

    def _close(
        self,
        fields: dict[str, object],
        result: CaptureResult,
        *,
        succeeded: bool,
        changes: Sequence[ConditionChange],
        now: datetime,
    ) -> ConnectionStatus:
        closing = {
            "phase": Phase.SUCCEEDED if succeeded else Phase.FAILED,
            "start_time": self._last.start_time or now,
            "completion_time": now,
            "capture_result": result,
        }
        return self._write({**closing, **fields}, changes, now)

    def _write(
        self, fields: dict[str, object], changes: Sequence[ConditionChange], now: datetime | None
    ) -> ConnectionStatus:
        if isinstance(message := fields.get("message"), str):
            fields["message"] = _shown(message)
        conditions = {condition.type: condition for condition in self._last.conditions or ()}
        for kind, status, reason, text in changes if now else ():
            before = conditions.get(str(kind))
            conditions[str(kind)] = StatusCondition(
                type=str(kind),
                status=status,
                reason=str(reason),
                message=_shown(text),
                last_transition_time=before.last_transition_time if before and before.status == status else now,
                observed_generation=self._generation,
            )
        self._last = self._last.model_copy(
            update={
                **fields,
                "planning_trials": None,
                "conditions": list(conditions.values()),
                "observed_generation": self._generation,
            }
        )
        return self._last


def subject(plan: CapturePlan) -> str:
    """Return the targets of a capture for a sentence about it."""
    return f"{len(plan.targets)} targets" if len(plan.targets) > 1 else plan.targets[0].pod


def _shown(message: str) -> str:
    """Return a message for people: servers and stores choose parts of it."""
    return printable(message)[:_MESSAGE_LENGTH]


def _numbers(outcomes: Sequence[TargetOutcome], plan: CapturePlan) -> dict[str, object]:
    """Return the numbers of targets.

    Pods that are not counted have results, but are in none of the numbers.
    """
    states = count(outcomes)
    captured = states[TargetState.CAPTURED]
    return {
        "progress": f"{captured}/{plan.total}",
        "targets": TargetCounts(
            total=plan.total,
            captured=captured,
            failed=states[TargetState.FAILED] + states[TargetState.CANCELLED],
            skipped=states[TargetState.SKIPPED] - plan.uncounted,
        ),
        "bytes": sum(outcome.bytes or 0 for outcome in outcomes if outcome.stored),
    }


def _skew_ms(outcomes: Sequence[TargetOutcome]) -> int | None:
    """Return whole milliseconds, bounded for a host whose clock is weeks off."""
    span = skew(outcomes)
    return None if span is None else min(round(span / timedelta(milliseconds=1)), 2**31 - 1)


def _captured(outcomes: Sequence[TargetOutcome], total: int) -> ConditionChange:
    recorded = sum(outcome.stored or outcome.reason in _NOT_STORED for outcome in outcomes)
    whole = recorded == total
    message = f"{counted_of(recorded, total, 'target')} recorded"
    reason = ProgressReason.CAPTURED if whole else ProgressReason.PARTLY_CAPTURED
    return (ConditionType.CAPTURED, "True" if whole else "False", reason, message)


def _stored(outcomes: Sequence[TargetOutcome]) -> ConditionChange:
    stored = sum(outcome.stored for outcome in outcomes)
    unstored = sorted({outcome.reason for outcome in outcomes if outcome.reason in _NOT_STORED})
    if not stored and not unstored:
        return (ConditionType.STORED, "False", ProgressReason.NOTHING_TO_STORE, "nothing was recorded")
    message = f"{counted(stored, 'trace')} stored"
    if unstored:
        reason = unstored[0] if len(unstored) == 1 and not stored else ProgressReason.PARTLY_STORED
        return (ConditionType.STORED, "False", reason, f"{message}, others not: {', '.join(unstored)}")
    return (ConditionType.STORED, "True", ProgressReason.STORED, message)
