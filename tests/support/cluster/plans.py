"""Plans and outcomes of captures, as values and as hypothesis strategies."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from hypothesis import strategies as st
from mldiagnostics.capture.model import Delivery, Reason, TargetState, Tracers
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget, SkippedTarget
from mldiagnostics_api.names import SkipReason
from mldiagnostics_operator.captures.outcomes import TargetOutcome

NOW = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
OUT = Location.parse("volume:///out")


def target(rank: int, *, pod: str | None = None, directory: Location = OUT) -> PlannedTarget:
    """Return a target on its own pod."""
    pod = pod or f"trainer-{rank}"
    return PlannedTarget(
        pod=pod,
        namespace="ml",
        uid=f"uid-{rank}",
        node=f"node-{rank}",
        rank=rank,
        slice=None,
        local_rank=None,
        host="10.0.0.7",
        port=9999,
        stem=pod,
        directory=directory,
        run_id=None,
    )


def skipped(rank: int, reason: SkipReason = SkipReason.NOT_READY) -> SkippedTarget:
    """Return a pod that is not contacted."""
    return SkippedTarget(pod=f"trainer-{rank}", uid=f"uid-{rank}", rank=rank, reason=reason, message="it starts")


def plan(targets: int = 2, skips: int = 0, **changes: Any) -> CapturePlan:
    """A plan of so many targets, and after them so many that are skipped."""
    values: dict[str, Any] = {
        "session": "capture-1",
        "attempt": 1,
        "targets": tuple(target(rank) for rank in range(targets)),
        "skipped": tuple(skipped(rank) for rank in range(targets, targets + skips)),
        "needed": targets + skips,
        "duration_ms": 1000,
        "lead_ms": 2000,
        "planned_start": NOW + timedelta(seconds=2),
        "deadline": NOW + timedelta(seconds=64),
        "tracers": Tracers(),
        "delivery": Delivery.OPERATOR,
        "allow_old_server": False,
        "dry_run": False,
        "max_trace_bytes": 2**28,
        "output": OUT,
    }
    return CapturePlan(**values | changes)


def captured(rank: int, *, start_ns: int = 1_795_262_400_000_000_000, size: int = 1000) -> TargetOutcome:
    """Return a target whose trace is stored."""
    return TargetOutcome(
        target=target(rank),
        state=TargetState.CAPTURED,
        reason=str(Reason.CAPTURED),
        file=f"{OUT}/plugins/profile/capture-1/trainer-{rank}.xplane.pb",
        bytes=size,
        sha256="0" * 64,
        start_ns=start_ns,
        stop_ns=start_ns + 10**9,
    )


def failed(rank: int, reason: Reason = Reason.SLOW, message: str = "it took too long") -> TargetOutcome:
    """A target that was contacted but not captured."""
    return TargetOutcome(target=target(rank), state=TargetState.FAILED, reason=str(reason), message=message)


@st.composite
def target_outcomes(draw: st.DrawFn, max_size: int = 8) -> list[TargetOutcome]:
    """Draw outcomes of any kind, of distinct targets, in any order."""
    made: list[TargetOutcome] = []
    for rank in range(draw(st.integers(1, max_size))):
        state = draw(
            st.sampled_from([TargetState.CAPTURED, TargetState.FAILED, TargetState.SKIPPED, TargetState.CANCELLED])
        )
        if state is TargetState.CAPTURED or (state is TargetState.CANCELLED and draw(st.booleans())):
            start_ns = draw(st.none() | st.integers(0, 2**62))
            size = draw(st.integers(0, 2**40))
            reason = Reason.CAPTURED if state is TargetState.CAPTURED else Reason.CANCELLED
            outcome = TargetOutcome(
                target=target(rank), state=state, reason=str(reason), file="f", bytes=size, start_ns=start_ns
            )
        elif state is TargetState.SKIPPED:
            why = draw(st.sampled_from(SkipReason))
            outcome = TargetOutcome(
                target=skipped(rank, why), state=state, reason=str(why), message=draw(st.text(max_size=50))
            )
        else:
            cause = draw(st.sampled_from([reason for reason in Reason if reason is not Reason.CAPTURED]))
            outcome = TargetOutcome(
                target=target(rank), state=state, reason=str(cause), message=draw(st.text(max_size=400))
            )
        made.append(outcome)
    return draw(st.permutations(made))
