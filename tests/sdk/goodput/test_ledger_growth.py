"""Queries cost in proportion to the log, not to its square; measured in lines of Python."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.report import make_report
from support.goodput.notation import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SMALL = 150


def lines_run(action: Callable[[], object]) -> int:
    """Return the number of lines of Python that an action runs.

    Objects that other tests left may have finalizers of many lines: none is collected meanwhile.
    """
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    gc.collect()
    gc.disable()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def restarts(number: int, steps: Callable[[int], Sequence[int]], *, ends: bool = False) -> list[Event]:
    """Return a job with `number` starts and these steps after each, with or without recorded ends."""
    log_events, t = [], micros(0)
    for attempt in range(number):
        log_events.append(Event(t, EventCode.JOB_START))
        for index in steps(attempt):
            t += 10_000_000
            log_events.append(Event(t, EventCode.STEP_START, index))
        t += 5_000_000
        if ends:
            log_events.append(Event(t, EventCode.JOB_END))
        t += 30_000_000
    return log_events


def on(attempt: int) -> Sequence[int]:
    return range(4 * attempt, 4 * attempt + 4)


JOBS = {
    "goes on after a recorded end": lambda number: restarts(number, on, ends=True),
    "goes on": lambda number: restarts(number, on),
    "begins from nothing after a recorded end": lambda number: restarts(number, lambda _: range(4), ends=True),
    "begins from nothing": lambda number: restarts(number, lambda _: range(4)),
    "begins ever deeper": lambda number: restarts(
        number, lambda attempt: range(number) if not attempt else [number - attempt]
    ),
    "begins ever deeper, with more steps than were lost": lambda number: restarts(
        number, lambda attempt: range(number - attempt, number + 2 - attempt)
    ),
    "never comes to a step": lambda number: restarts(number, lambda _: ()),
}


@pytest.mark.parametrize("job", JOBS)
def test_a_cold_query_costs_in_proportion_to_the_restarts(job: str) -> None:
    def cost(number: int) -> int:
        history, events = History(), JOBS[job](number)
        for event in events:
            history.add(event)
        return lines_run(lambda: make_report(history.of(events[-1].t), now=events[-1].t))

    small, large = cost(SMALL), cost(4 * SMALL)
    assert large < 5 * small  # sixteen times as much would be the square


def test_a_late_event_costs_little_right_after_a_long_log() -> None:
    history, events = History(), restarts(1, lambda _: range(4000))
    late = events.pop(-2)
    now = events[-1].t
    for event in events:
        history.add(event)
    cold = lines_run(lambda: history.of(now).account(now))
    history.add(late)
    assert lines_run(lambda: history.of(now).account(now)) < cold / 20
