"""The laws for long logs, which are folded in chunks and rewound to saved states."""

from __future__ import annotations

from io import BytesIO
from random import Random
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.ledger import Ledger
from support.goodput.histories import damaged, with_harmless_changes
from support.goodput.oracle import Loss, Oracle
from support.goodput.stretches import merged
from support.goodput.truth import Job, Style

if TYPE_CHECKING:
    from mldiagnostics.goodput.events.event import Event


def long_log(seed: int, attempts: int, steps: int) -> tuple[list[Event], Random]:
    dice = Random(seed)
    job = Job(dice, Style(step_ends=bool(seed % 2), hosts=2, jitter=300)).live(attempts, steps)
    return sorted(damaged(job.events, dice), key=lambda event: event.t), dice


def ledger_of(events: list[Event]) -> Ledger:
    ledger = Ledger(splits=False)
    for event in events:
        ledger.add(event)
    return ledger


def answers(ledger: Ledger, now: int) -> list[object]:
    account, times = ledger.account(now), ledger.step_times(now)
    return [
        [getattr(account, name) for name in account.__slots__],
        list(ledger.timeline(now)),
        ledger.disruptions(now),
        (list(times.steps), list(times.durations)),
        ledger.ideal_step_time(now),
        ledger.open_step(now),
    ]


@pytest.mark.parametrize("seed", range(2))
def test_a_long_log_equals_the_oracle(seed: int) -> None:
    events, dice = long_log(seed, attempts=25, steps=50)
    for now in (events[-1].t, dice.choice(events).t):
        ledger, oracle = ledger_of(events), Oracle(events, now)
        assert merged(ledger.timeline(now)) == oracle.timeline()
        assert [Loss(*(getattr(loss, name) for name in Loss._fields)) for loss in ledger.disruptions(now)] == (
            oracle.losses()
        )
        times = ledger.step_times(now)
        assert dict(zip(times.steps, times.durations, strict=True)) == oracle.step_times()


@pytest.mark.parametrize("seed", range(2))
def test_late_events_and_queries_about_the_past_change_nothing(seed: int) -> None:
    events, dice = long_log(10 + seed, attempts=30, steps=60)
    late = [event for event in events if dice.random() < 0.02]
    on_time = [event for event in events if event not in late]
    ledger, added = Ledger(splits=False), []
    checks = {dice.randrange(len(on_time)) for _ in range(12)}
    for place, event in enumerate(on_time):
        added.append(event)
        ledger.add(event)
        if dice.random() < 0.02:
            ledger.account(event.t)
        while late and late[0].t < event.t and dice.random() < 0.1:
            added.append(late.pop(dice.randrange(min(len(late), 20))))
            ledger.add(added[-1])
        if place in checks:
            for now in (event.t, dice.choice(added).t, event.t + 5_000_000):
                assert answers(ledger, now) == answers(ledger_of(added), now)
            if dice.random() < 0.5:
                kept = BytesIO()
                ledger.dump(kept)
                ledger = Ledger.load(BytesIO(kept.getvalue()))


def test_repeated_events_of_a_long_log_in_any_order_change_nothing() -> None:
    dice = Random(7)
    job = Job(dice, Style(hosts=3)).live(attempts=30, steps=60)
    added = [event for event in with_harmless_changes(job.events, dice) if event.t <= job.clock]
    assert list(ledger_of(added).timeline(job.clock)) == list(ledger_of(job.events).timeline(job.clock))
