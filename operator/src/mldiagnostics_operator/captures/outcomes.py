"""The outcome of each target: captured, failed, skipped, stored or lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from mldiagnostics.capture.model import Outcome, Reason, TargetState
from mldiagnostics.text.counts import counted_of
from mldiagnostics.text.terminal import printable
from mldiagnostics_api.formats import EPOCH
from mldiagnostics_api.names import SkipReason
from mldiagnostics_api.v1alpha1 import TargetResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics.capture.model import ServerProbe
    from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget, SkippedTarget

_MESSAGE_LENGTH: Final = 300
_WORST_FIRST: Final = {TargetState.FAILED: 0, TargetState.CANCELLED: 1, TargetState.SKIPPED: 2, TargetState.CAPTURED: 3}
DRY_RUN: Final = "DryRun"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetOutcome:
    """How one target ended; times are those of its host, in Unix nanoseconds."""

    target: PlannedTarget | SkippedTarget
    state: TargetState
    reason: str
    message: str = ""
    file: str | None = None
    bytes: int | None = None
    sha256: str | None = None
    start_ns: int | None = None
    stop_ns: int | None = None
    server: ServerProbe | None = None

    @property
    def stored(self) -> bool:
        """Whether there is a trace in the store; that of a cancelled target is shorter."""
        return self.file is not None


def of_outcome(target: PlannedTarget, outcome: Outcome) -> TargetOutcome:
    """Return the outcome that the engine reports."""
    return TargetOutcome(
        target=target,
        state=outcome.state,
        reason=str(outcome.reason),
        message=outcome.message,
        file=outcome.file,
        bytes=outcome.bytes,
        sha256=outcome.sha256,
        start_ns=outcome.start_ns,
        stop_ns=outcome.stop_ns,
        server=outcome.server,
    )


def of_skip(target: SkippedTarget) -> TargetOutcome:
    """Return the outcome of a pod that was not contacted."""
    return TargetOutcome(target=target, state=TargetState.SKIPPED, reason=str(target.reason), message=target.message)


def of_file(target: PlannedTarget | SkippedTarget, *, file: str, size: int) -> TargetOutcome:
    """Return the outcome of a trace that an earlier process stored."""
    return TargetOutcome(target=target, state=TargetState.CAPTURED, reason=str(Reason.CAPTURED), file=file, bytes=size)


def dry_run_outcome(target: PlannedTarget) -> TargetOutcome:
    """Return the outcome of a target of a dry run."""
    return TargetOutcome(
        target=target,
        state=TargetState.SKIPPED,
        reason=DRY_RUN,
        message=f"would be captured at {target.host}:{target.port}",
    )


def not_captured(plan: CapturePlan) -> list[TargetOutcome]:
    """Return the outcomes of all targets of a plan that is not carried out."""
    return [*(dry_run_outcome(target) for target in plan.targets), *(of_skip(target) for target in plan.skipped)]


def skew(outcomes: Iterable[TargetOutcome]) -> timedelta | None:
    """Return the time between the first and the last host's start, or None.

    At least two starts must be known.
    """
    starts = [outcome.start_ns for outcome in outcomes if outcome.start_ns is not None]
    return timedelta(microseconds=(max(starts) - min(starts)) / 1000) if len(starts) > 1 else None


def count(outcomes: Iterable[TargetOutcome]) -> Counter[TargetState]:
    """Count the outcomes by state."""
    return Counter(outcome.state for outcome in outcomes)


def result(outcome: TargetOutcome) -> TargetResult:
    """Return an outcome in the form of the object's status.

    Long messages are cut; `capture.json` has them whole.
    """
    target = outcome.target
    return TargetResult(
        pod=target.pod,
        uid=target.uid or None,
        node=target.node or None,
        rank=target.rank,
        slice=target.slice,
        local_rank=target.local_rank,
        port=target.port,
        state=outcome.state,
        reason=outcome.reason,
        message=_cut(outcome.message) or None,
        file=outcome.file,
        bytes=outcome.bytes,
        start_time=moment(outcome.start_ns),
        stop_time=moment(outcome.stop_ns),
    )


def results(outcomes: Iterable[TargetOutcome], *, max_bytes: int) -> list[TargetResult]:
    """Return results that fit into `max_bytes` of JSON: failures first, then by rank."""
    chosen: list[TargetResult] = []
    for outcome in sorted(outcomes, key=lambda outcome: (_WORST_FIRST[outcome.state], *_rank_and_pod(outcome))):
        written = result(outcome)
        max_bytes -= len(written.model_dump_json(by_alias=True, exclude_none=True).encode()) + 1
        if max_bytes < 0:
            break
        chosen.append(written)
    return chosen


def summary(outcomes: Sequence[TargetOutcome], *, uncounted: int = 0) -> str:
    """Return how many targets were captured, and one example for each other reason.

    Args:
        outcomes: The outcomes of targets and of pods that are not targets.
        uncounted: Pods among them that are not targets, as no controller confirms them.
    """
    captured = count(outcomes)[TargetState.CAPTURED]
    parts = [f"{counted_of(captured, len(outcomes) - uncounted, 'target')} captured"]
    others: dict[str, list[TargetOutcome]] = {}
    for outcome in sorted(outcomes, key=_rank_and_pod):
        if outcome.state is not TargetState.CAPTURED:
            others.setdefault(outcome.reason, []).append(outcome)
    for reason, ended in sorted(others.items(), key=lambda item: -len(item[1])):
        first = ended[0]
        note = ", not counted" if uncounted and reason == SkipReason.NOT_CONFIRMED else ""
        parts.append(f"{len(ended)} {reason}{note} ({first.target.pod}: {_cut(first.message)})")
    return "; ".join(parts)


def moment(ns: int | None) -> datetime | None:
    """Return Unix nanoseconds as a time, to the microsecond."""
    return None if ns is None else EPOCH + timedelta(microseconds=ns // 1000)


def _rank_and_pod(outcome: TargetOutcome) -> tuple[int, str]:
    rank = outcome.target.rank
    return (-1 if rank is None else rank, outcome.target.pod)


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _MESSAGE_LENGTH else f"{text[: _MESSAGE_LENGTH - 1]}…"
