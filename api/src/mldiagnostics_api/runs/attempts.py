"""The attempts of a run: each is one life of its program, without a gap; pure.

The number rises by one when the controller of the workload counts a restart, when the container that leads is restarted
in place, when a pod that leads a workload without such a count is replaced, and when a suspended workload goes on. The
SDK counts in the same way (`mldiagnostics.runs.attempt_numbers`): by the processes that lead, one after the other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from mldiagnostics_api.lifecycle import MAX_REASON, MAX_TEXT
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ATTEMPTS

HELD_BACK: Final = frozenset({"Queued", "Suspended"})
"""Reasons of a run that a queue or a user holds back."""
RESTARTED: Final = "Restarted"
"""Reason of an attempt whose container was restarted, if the kubelet gives none."""
REPLACED: Final = "PodReplaced"
"""Reason of an attempt whose pod was replaced, of a workload that does not count that."""


@dataclass(frozen=True, slots=True)
class PhaseState:
    """The phase of a run, and why."""

    phase: MLRunPhase
    reason: str
    message: str
    ended: datetime | None = None
    """Set if and only if the phase is final."""

    @property
    def is_held(self) -> bool:
        """Whether a queue or a user holds the run back."""
        return self.reason in HELD_BACK

    @property
    def outcome(self) -> dict[str, Any]:
        """Reason and message as fields of an attempt."""
        return {"reason": self.reason[:MAX_REASON] or None, "message": self.message[:MAX_TEXT] or None}


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartCounts:
    """Counts of the restarts of a run."""

    controller: int = 0
    """The count of the workload's controller; of a run without a workload, the number that its processes report."""
    program: PodProgram | None = None
    """The container of the pod that leads; None if it is not known."""
    counts_pods: bool = False
    """Whether the controller counts replaced pods."""


def controller_attempt(status: MLRunStatus) -> int:
    """Return the controller's number of the current attempt.

    The labels of its pods have the same number.
    """
    last = status.attempts[-1] if status.attempts else None
    own = status.attempt if last is None else _controller(last)
    return own or 0


def next_attempts(
    previous: MLRunStatus, state: PhaseState, counts: RestartCounts, *, started: bool, now: datetime
) -> list[RunAttempt] | None:
    """Return the attempts of a run, the oldest first; None before the first one.

    Args:
        previous: Status before.
        state: Phase of the run now.
        counts: The restarts by now.
        started: Whether the run has started.
        now: Current time.
    """
    attempts = list(previous.attempts or ())
    if not attempts:
        if not started:  # one that never started has an end and a cause too
            return [_new(counts.controller, counts, end_time=state.ended, **state.outcome)] if state.ended else None
        # An attempt may fail before anybody sees that it runs.
        first = counts.controller if previous.attempt is None else previous.attempt
        attempts = [
            RunAttempt(attempt=number, controller_attempt=number, end_time=now, **state.outcome)
            for number in range(first, counts.controller)
        ]
        seen, ended = state.ended or now, counts.program.ended if counts.program else None
        attempts.append(_new(counts.controller, counts, start_time=min(seen, ended or seen)))
    last = attempts[-1]
    if state.is_held:
        return _closed(attempts, state.ended or now, state.outcome)[-MAX_ATTEMPTS:]
    if last.reason in HELD_BACK and last.end_time is not None:
        if state.ended is not None:
            return attempts
        attempts.append(_new(last.attempt + 1, counts, start_time=now))
    attempts = _restarted(attempts, counts, state, now)
    program = _own_program(attempts, counts)
    if state.ended is not None:
        attempts = _closed(attempts, state.ended, state.outcome)
    elif program is not None and program.waiting:
        attempts = _closed_by(program, attempts, now)
    elif previous.workload is None and attempts[-1].end_time is not None:
        # The processes of a run without a workload report again.
        attempts[-1] = attempts[-1].model_copy(update={"end_time": None, "reason": None, "message": None})
    return attempts[-MAX_ATTEMPTS:]


def _restarted(
    attempts: Sequence[RunAttempt], counts: RestartCounts, state: PhaseState, now: datetime
) -> list[RunAttempt]:
    """Return the attempts with those that began since."""
    result = list(attempts)
    program = _own_program(attempts, counts)
    for controller, restarts in _begun(attempts[-1], counts, program):
        last = result[-1]
        start = state.ended or now
        if program is not None and restarts > 0:
            result = _closed_by(program.before or program, result, now)
            start = program.started or program.ended or now
        elif program is not None and controller == _controller(last):
            message = f"pod '{program.pod}' replaced the one that led the run"
            result = _closed(result, now, {"reason": REPLACED, "message": message})
        else:
            result = _closed(result, now, state.outcome)
        result.append(
            RunAttempt(
                attempt=last.attempt + 1,
                controller_attempt=controller,
                container_restarts=restarts,
                pod_uid=program.uid if program else None,
                start_time=max(start, result[-1].end_time or start),
            )
        )
    last = result[-1]
    if program is not None and (last.pod_uid, last.container_restarts) != (program.uid, program.restarts):
        seen = {"pod_uid": program.uid, "container_restarts": program.restarts}
        result[-1] = last.model_copy(update={"controller_attempt": _controller(last), **seen})
    return result


def _begun(last: RunAttempt, counts: RestartCounts, program: PodProgram | None) -> Iterator[tuple[int, int]]:
    """Yield the two counts of each attempt after the last one."""
    controller = _controller(last)
    restarts = last.container_restarts or 0
    for number in range(controller + 1, counts.controller + 1):
        yield number, 0
        restarts = 0
    controller = max(controller, counts.controller)
    if program is None:
        return
    if last.pod_uid not in (None, program.uid):
        if controller == _controller(last):
            yield controller, 0
        restarts = 0
    for count in range(restarts + 1, program.restarts + 1):
        yield controller, count


def _own_program(attempts: Sequence[RunAttempt], counts: RestartCounts) -> PodProgram | None:
    """Return the container that leads.

    None if its pod belongs to another attempt by the controller's count.
    """
    program, last = counts.program, attempts[-1]
    if program is None:
        return None
    is_early = last.pod_uid not in (None, program.uid) and counts.controller <= _controller(last)
    if counts.counts_pods and is_early:  # the count of this replaced pod follows
        return None
    is_left = any(
        each.pod_uid == program.uid and (_controller(each) < counts.controller or each.reason in HELD_BACK)
        for each in attempts
    )
    return None if is_left else program


def _new(number: int, counts: RestartCounts, **fields: Any) -> RunAttempt:
    return RunAttempt(attempt=number, controller_attempt=counts.controller, **fields)


def _closed(attempts: Sequence[RunAttempt], ended: datetime, outcome: dict[str, Any]) -> list[RunAttempt]:
    """Return the attempts with an end of the last one, if it has none."""
    last = attempts[-1]
    if last.end_time is not None:
        return list(attempts)
    # Clocks differ: an attempt does not end before it starts.
    ended = max(ended.replace(microsecond=0), last.start_time or ended)
    return [*attempts[:-1], last.model_copy(update={"end_time": ended, **outcome})]


def _closed_by(program: PodProgram, attempts: Sequence[RunAttempt], now: datetime) -> list[RunAttempt]:
    """Return the attempts, the last one with the end of a container.

    The operator may have seen its start after that.
    """
    last, before = attempts[-1], attempts[-2].end_time if len(attempts) > 1 else None
    if last.end_time is not None:
        return list(attempts)
    ended = max(filter(None, (program.ended or now, before)))
    start = last.start_time and min(last.start_time, ended)
    outcome = {"reason": program.reason[:MAX_REASON] or RESTARTED, "message": program.message[:MAX_TEXT] or None}
    return [*attempts[:-1], last.model_copy(update={"start_time": start, "end_time": ended, **outcome})]


def _controller(attempt: RunAttempt) -> int:
    """Return the controller's number of an attempt.

    Older versions of the operator wrote only that.
    """
    return attempt.attempt if attempt.controller_attempt is None else attempt.controller_attempt
