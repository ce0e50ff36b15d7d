"""Laws for every log, also damaged ones: the ledger equals the oracle of the rules, in any order."""

from __future__ import annotations

from array import array
from contextlib import suppress
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.history import History
from support.goodput.histories import dice, jobs, logs, moments, with_harmless_changes
from support.goodput.oracle import OTHER, RECOVERY, STARTUP, WASTED, Loss, Oracle
from support.goodput.reading import CHECKPOINTS, runs
from support.goodput.stretches import merged

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from random import Random

    from mldiagnostics.goodput.account import Account, Disruption
    from support.goodput.truth import Job

FEWER = settings(max_examples=settings().max_examples * 2 // 5)
"""For laws with many queries for each example."""

PARTED = (None, WASTED, RECOVERY, OTHER, STARTUP)
"""Buckets of moments that no span covers."""


def ledger_of(events: Iterable[Event]) -> Ledger:
    ledger = Ledger(splits=False)
    for event in events:
        ledger.add(event)
    return ledger


def everything(ledger: Ledger, now: int) -> list[object]:
    """Return the results of all queries."""
    return [
        comparable(ledger.account(now)),
        list(ledger.timeline(now)),
        ledger.attempts(now),
        ledger.disruptions(now),
        comparable_steps(ledger, now),
        ledger.ideal_step_time(now),
        ledger.open_step(now),
        ledger.ended(now),
    ]


def comparable(account: Account) -> dict[str, object]:
    fields = {name: getattr(account, name) for name in account.__slots__}
    return {**fields, "unproductive": dict(account.unproductive)}


def comparable_steps(ledger: Ledger, now: int) -> dict[int, int]:
    times = ledger.step_times(now)
    return dict(zip(times.steps, times.durations, strict=True))


def loss(disruption: Disruption) -> Loss:
    return Loss(*(getattr(disruption, name) for name in Loss._fields))


@st.composite
def questions(draw: st.DrawFn) -> tuple[list[Event], int]:
    """Draw a log and a query time."""
    events = draw(logs())
    return events, draw(moments(events))


@st.composite
def windows(draw: st.DrawFn) -> tuple[list[Event], int, list[int]]:
    """Draw a log, a query time, and some moments in order."""
    events, now = draw(questions())
    return events, now, sorted(draw(st.lists(moments(events), min_size=4, max_size=8)))


@given(questions())
def test_the_timeline_equals_the_oracle(question: tuple[list[Event], int]) -> None:
    events, now = question
    assert merged(ledger_of(events).timeline(now)) == Oracle(events, now).timeline()


@given(windows())
def test_accounts_equal_the_oracle(question: tuple[list[Event], int, list[int]]) -> None:
    events, now, (start, *inside, end) = question
    ledger, oracle = ledger_of(events), Oracle(events, now)
    assert comparable(ledger.account(now)) == comparable(oracle.account())
    exclude = list(zip(inside[::2], inside[1::2], strict=False))
    account = ledger.account(now, start=start, end=end, exclude=exclude)
    assert comparable(account) == comparable(oracle.account(start=start, end=end, exclude=exclude))


@given(questions())
def test_steps_and_disruptions_equal_the_oracle(question: tuple[list[Event], int]) -> None:
    events, now = question
    ledger, oracle = ledger_of(events), Oracle(events, now)
    assert comparable_steps(ledger, now) == oracle.step_times()
    assert ledger.ideal_step_time(now) == oracle.ideal_step_time()
    assert [loss(disruption) for disruption in ledger.disruptions(now)] == oracle.losses()
    start, end = oracle.begin, oracle.end
    assert ledger.slices(now, start, end) == pytest.approx(oracle.slices(start, end))


@given(windows())
@FEWER
def test_every_microsecond_is_in_one_segment(question: tuple[list[Event], int, list[int]]) -> None:
    events, now, (start, *_, end) = question
    ledger = ledger_of(events)
    account = ledger.account(now, start=start, end=end)
    segments = list(ledger.timeline(now, start=start, end=end))
    edges = [account.start, *(segment.end for segment in segments)]
    assert [segment.start for segment in segments] == edges[:-1]
    assert edges[-1] == account.end
    assert all(segment.start < segment.end for segment in segments)
    sums = dict.fromkeys((None, *account.unproductive), 0)
    for segment in segments:
        sums[segment.spent] += segment.end - segment.start
    assert sums == {None: account.productive, **account.unproductive}
    assert account.productive + sum(account.unproductive.values()) == account.elapsed == account.end - account.start


@given(questions())
@FEWER
def test_attempts_divide_the_run_and_disruptions_divide_attempts(question: tuple[list[Event], int]) -> None:
    events, now = question
    ledger = ledger_of(events)
    attempts, losses, whole = ledger.attempts(now), ledger.disruptions(now), ledger.account(now)
    assert [attempt.number for attempt in attempts] == list(range(len(attempts)))
    assert (attempts[0].account.start, attempts[-1].account.end) == (whole.start, whole.end)
    assert all(old.account.end == new.account.start for old, new in pairwise(attempts))
    assert sum(attempt.account.productive for attempt in attempts) == whole.productive
    assert [attempt.ended_by for attempt in attempts] == [*losses, None]
    assert len(losses) == whole.disruptions
    for disruption in losses:
        assert disruption.lost <= disruption.seen <= disruption.restarted <= (disruption.resumed or now)
        assert (disruption.detect, disruption.reschedule) == (
            disruption.seen - disruption.lost,
            disruption.restarted - disruption.seen,
        )
        assert disruption.recovered >= (disruption.resumed or disruption.restarted) - disruption.lost
        assert disruption.init + disruption.restore <= (disruption.resumed or now) - disruption.restarted


@given(windows())
@FEWER
def test_windows_add_up(question: tuple[list[Event], int, list[int]]) -> None:
    events, now, cuts = question
    ledger = ledger_of(events)
    whole = ledger.account(now, start=cuts[0], end=cuts[-1])
    parts = [ledger.account(now, start=a, end=b) for a, b in pairwise(cuts)]
    for name in ("elapsed", "productive", "overlay", "disruptions"):
        assert getattr(whole, name) == sum(getattr(part, name) for part in parts)
    for spent in {spent for account in (whole, *parts) for spent in account.unproductive}:
        assert whole.unproductive.get(spent, 0) == sum(part.unproductive.get(spent, 0) for part in parts)


@given(windows())
@FEWER
def test_exclusions_remove_the_covered_time_once(question: tuple[list[Event], int, list[int]]) -> None:
    events, now, (start, *inside, end) = question
    ledger = ledger_of(events)
    pieces = list(pairwise(inside))
    whole = ledger.account(now, start=start, end=end)
    without = ledger.account(now, start=start, end=end, exclude=[*reversed(pieces), *pieces[:2]])
    gone = [ledger.account(now, start=a, end=b) for a, b in pieces]
    assert without.excluded == sum(account.elapsed for account in gone)
    assert without.elapsed == whole.elapsed - without.excluded
    assert without.productive == whole.productive - sum(account.productive for account in gone)
    for spent in whole.unproductive:
        taken = sum(account.unproductive.get(spent, 0) for account in gone)
        assert without.unproductive.get(spent, 0) == whole.unproductive[spent] - taken


@given(questions(), dice())
@FEWER
def test_any_order_of_arrival_gives_the_same(question: tuple[list[Event], int], random: Random) -> None:
    events, now = question
    shuffled = [*events, *events[::3]]
    random.shuffle(shuffled)
    assert everything(ledger_of(shuffled), now) == everything(ledger_of(events), now)


@given(st.data(), logs())
@FEWER
def test_earlier_queries_change_nothing(data: st.DataObject, events: list[Event]) -> None:
    """Every query equals that of a fresh ledger, at any moment, also of the past."""
    ledger = Ledger(splits=False)
    for count, event in enumerate(events, 1):
        ledger.add(event)
        if data.draw(st.booleans()):
            now = data.draw(moments(events))
            assert everything(ledger, now) == everything(ledger_of(events[:count]), now)


@given(questions(), st.data())
@FEWER
def test_events_in_bulk_are_the_same_events(question: tuple[list[Event], int], data: st.DataObject) -> None:
    events, now = question
    plain = [event for event in events if isinstance(event.arg, int) and event.rank == 0]
    cut = data.draw(st.integers(0, len(plain)))
    ledger = ledger_of(event for event in events if event not in plain)
    for part in (plain[:cut], plain[cut:]):
        numbers = array("i", [event.arg for event in part if isinstance(event.arg, int)])
        ledger.extend(array("q", [event.t for event in part]), bytes(event.code for event in part), numbers)
        ledger.account(now)
    assert everything(ledger, now) == everything(ledger_of(events), now)


@given(questions(), st.data())
@FEWER
def test_a_ledger_can_be_stored_and_continued(question: tuple[list[Event], int], data: st.DataObject) -> None:
    events, now = question
    cut = data.draw(st.integers(0, len(events)))
    before = ledger_of(events[:cut])
    if data.draw(st.booleans()):
        before.account(now)
    kept = BytesIO()
    before.dump(kept)
    after = Ledger.load(BytesIO(kept.getvalue()))
    assert everything(after, now) == everything(before, now)
    for event in events[cut:]:
        after.add(event)
    assert everything(after, now) == everything(ledger_of(events), now)
    assert dict(after.ignored) == dict(ledger_of(events).ignored)


@given(questions())
@FEWER
def test_later_events_are_ignored(question: tuple[list[Event], int]) -> None:
    events, now = question
    fields = [event for event in events if event.rank == 0 or event.code in CHECKPOINTS]
    assert everything(ledger_of(fields), now) == everything(ledger_of(e for e in fields if e.t <= now), now)


@given(jobs(), dice())
@FEWER
def test_repeated_events_change_nothing(job: Job, random: Random) -> None:
    fields = [event for event in with_harmless_changes(job.events, random) if event.t <= job.clock]
    first, again = ledger_of(job.events), ledger_of(fields)
    assert list(again.timeline(job.clock)) == list(first.timeline(job.clock))
    assert comparable_steps(again, job.clock) == comparable_steps(first, job.clock)


@given(jobs(), st.data())
@FEWER
def test_settled_results_stay(job: Job, data: st.DataObject) -> None:
    """Once all spans are closed, later events may only move past time between buckets of steps.

    These are a step, its loss, its startup and recovery. Lost steps stay lost; the total stays.
    """
    ledger = ledger_of(job.events)
    steps = [event.t for event in job.events if event.code is EventCode.JOB_START]
    settled = data.draw(st.sampled_from(steps))
    later = data.draw(st.sampled_from([event.t for event in job.events if event.t >= settled] + [job.clock]))
    then, now = ledger.account(settled), ledger.account(later, end=settled)
    assert now.elapsed == then.elapsed
    kept = {spent for spent in then.unproductive if spent not in PARTED}
    loads = {spent for spent in kept if spent.bucket is BadputType.DATA_LOADING_SYNC}
    for spent in kept - loads:
        assert now.unproductive[spent] == then.unproductive[spent]
    assert now.unproductive.get(WASTED, 0) >= then.unproductive.get(WASTED, 0)


@given(logs(), st.data())
def test_runs_of_a_log_without_run_ids_equal_the_oracle(events: list[Event], data: st.DataObject) -> None:
    now = data.draw(moments(events))
    history = History()
    for event in events:
        history.add(event)
    divided: Sequence[list[Event]] = runs(events, now)
    names = history.runs(now)
    assert names == [str(number) for number in range(1, len(divided) + 1)]
    for name, part in zip(names, divided, strict=True):
        assert comparable(history.of(now, name).account(now)) == comparable(Oracle(part, now).account())


@FEWER
@given(logs(), dice(), st.data())
def test_a_history_can_be_stored_and_continued(events: list[Event], random: Random, data: st.DataObject) -> None:
    """Any names of runs, events in any order."""
    now = data.draw(moments(events))
    fields = [event._replace(run=random.choice(["", "first", "second"])) for event in events]
    cut = data.draw(st.integers(0, len(fields)))
    before, whole = History(), History()
    for event in fields[:cut]:
        before.add(event)
    for event in fields:
        whole.add(event)
    before.ignored["bad time"] = cut
    kept = BytesIO()
    before.dump(kept)
    after = History.load(BytesIO(kept.getvalue()))
    assert after.ignored == before.ignored
    for event in fields[cut:]:
        after.add(event)
    assert after.runs(now) == whole.runs(now)
    for run in [None, *whole.runs(now)]:
        assert comparable(after.of(now, run).account(now)) == comparable(whole.of(now, run).account(now))


def test_a_history_lists_its_runs() -> None:
    history = History()
    for run in ("first", "second"):
        history.add(Event(1_000_000, EventCode.JOB_START, run=run))
    assert history.runs(2_000_000) == ["first", "second"]
    with pytest.raises(KeyError, match="run 'third': not in the log; use one of first, second"):
        history.of(2_000_000, "third")


@pytest.mark.parametrize("kind", [Ledger, History])
@given(damage=st.binary(max_size=40), place=st.floats(0, 1), events=logs())
@FEWER
def test_damaged_snapshots_are_rejected(
    kind: type[Ledger | History], damage: bytes, place: float, events: list[Event]
) -> None:
    """Truncated, overwritten or other bytes raise ValueError or are harmless."""
    kept = BytesIO()
    ledger = Ledger(splits=False) if kind is Ledger else History()
    for event in events:
        ledger.add(event)
    ledger.dump(kept)
    whole = kept.getvalue()
    cut = int(place * len(whole))
    for wrong in (whole[:cut], whole[:cut] + damage + whole[cut + len(damage) :], damage):
        with suppress(ValueError):
            kind.load(BytesIO(wrong))
