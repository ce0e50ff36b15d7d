"""Event columns: bulk and single events in any order, and the memory of a step."""

from __future__ import annotations

from array import array
from itertools import permutations
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.columns import EventColumns
from mldiagnostics.goodput.ledger.intervals import Intervals
from support.goodput.histories import logs
from support.goodput.notation import events, micros

if TYPE_CHECKING:
    from collections.abc import Iterable

S = 1_000_000


def columns(log_events: Iterable[Event]) -> EventColumns:
    log_columns = EventColumns()
    for event in log_events:
        log_columns.add(event)
    return log_columns


def content(log: EventColumns) -> list[tuple[int, int, object]]:
    """Return the columns with resolved arguments: their places depend on the order of arrival."""
    inline = (EventCode.ALIVE, *(code for code in EventCode if code < EventCode.SAVE_START), *range(18, 22))
    return [
        (t, code, arg if code in inline else log.table[arg])
        for t, code, arg in zip(log.t, log.code, log.arg, strict=True)
    ]


def training(steps: int) -> tuple[array[int], bytearray, array[int]]:
    """Return steps as MaxText logs them: start and end of a load, and a step."""
    times, codes, args = array("q", [0]), bytearray([EventCode.JOB_START]), array("i", [0])
    for step in range(steps):
        times.extend((step * S + 1, step * S + 100, step * S + 100))
        codes.extend((EventCode.LOAD_START, EventCode.LOAD_END, EventCode.STEP_START))
        args.extend((0, 0, step))
    return times, codes, args


def test_events_of_one_moment_have_a_fixed_order() -> None:
    log_events = events("end@5 *eval@5- 3@5 tpu@-5 job@5")
    for order in permutations(log_events):
        log = columns(order)
        names = [EventCode(code).name for code in log.code]
        assert names == ["JOB_START", "TPU_INIT_END", "STEP_START", "CUSTOM_START", "JOB_END"]


@pytest.mark.timeout(60)
def test_many_events_of_one_moment_take_their_places_without_passing_all_others() -> None:
    names = [f"{number:05}" for number in range(100_000)]  # a search through all of them took a quarter of an hour
    log = columns(Event(S, EventCode.CUSTOM_START, name) for name in (*names, *names))
    assert [log.table[number] for number in log.arg] == names


@given(logs(), st.randoms(use_true_random=False))
def test_columns_do_not_depend_on_the_order_of_arrival(log_events: list[Event], dice: object) -> None:
    shuffled = [*log_events, *log_events[::2]]
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert content(columns(shuffled)) == content(columns(log_events))


@given(logs(), st.integers(0, 3))
def test_bulk_equals_single_events(log_events: list[Event], rank: int) -> None:
    plain = [event._replace(rank=rank) for event in log_events if isinstance(event.arg, int)]
    one_by_one, bulk = columns(log_events), columns(log_events)
    changed = [place for event in plain if (place := one_by_one.add(event)) is not None]
    before = content(bulk)
    numbers = array("i", [int(str(event.arg)) for event in plain])
    place = bulk.extend(array("q", [e.t for e in plain]), bytes(e.code for e in plain), numbers, rank=rank)
    assert content(bulk) == content(one_by_one)
    assert bulk.authority == one_by_one.authority
    assert bulk.ignored == one_by_one.ignored
    if place is None:
        assert not changed
    else:
        assert content(bulk)[:place] == before[:place]


def test_bulk_rejects_arguments_that_are_not_numbers() -> None:
    ledger = Ledger(splits=False)
    with pytest.raises(ValueError, match="the argument of code 22 is not a number"):
        ledger.extend(array("q", [1]), bytes([EventCode.CUSTOM_START]), array("i", [0]))
    with pytest.raises(ValueError, match="2 times, 1 codes and 1 args"):
        ledger.extend(array("q", [1, 2]), bytes([EventCode.JOB_START]), array("i", [0]))
    ledger.extend(array("q"), b"", array("i"))
    assert ledger.first_event is None


def test_a_step_with_its_load_costs_less_than_80_bytes() -> None:
    ledger = Ledger(splits=False)
    ledger.extend(*training(20_000))
    assert ledger.account(20_000 * S).max_step == 19_998
    (run,) = ledger.runs(20_000 * S)
    kept = [ledger.log.t, ledger.log.arg, *run.fold.folded.columns()]
    assert sum(len(each) * each.itemsize for each in kept) + len(ledger.log.code) < 80 * 20_000


def test_a_small_step_back_does_not_refold_the_log() -> None:
    ledger = Ledger(splits=False)
    ledger.extend(*training(40_000))
    now = 40_000 * S
    ledger.account(now)
    (run,) = ledger.runs(now)
    for step in range(40_000, 40_100):
        ledger.add(Event(step * S, EventCode.STEP_START, step))
        ledger.account(step * S)
    for behind in (1, 5, 50):
        place = len(ledger.log.t) - behind
        run.fold.rewind(place)
        assert place - behind - 20 <= run.fold.state.place <= place
        ledger.account(40_100 * S)


def test_a_clipped_interval_at_the_end_of_a_block_has_its_new_length() -> None:
    intervals = Intervals()
    for start in range(0, 4000, 10):
        intervals.append(start, start + 4)
    assert intervals.before(4000) == 1600
    for length in range(399, 0, -1):
        intervals.clip(length * 10 - 7)
        intervals.append(length * 10 - 7, length * 10)
        assert intervals.before(4000) == length * 4 - 1 + 7
        intervals.cut(length)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 30)), max_size=50), st.data())
def test_intervals_return_the_covered_time(gaps: list[tuple[int, int]], data: st.DataObject) -> None:
    intervals, covered, now = Intervals(), set(), 0
    for gap, length in gaps:
        intervals.append(now + gap, now + gap + length)
        covered |= set(range(now + gap, now + gap + length))
        now += gap + length
    moments = st.integers(-5, now + 5)
    for t in data.draw(st.lists(moments, min_size=3, max_size=6)):
        assert intervals.before(t) == sum(each < t for each in covered)
    cut = data.draw(moments)
    intervals.clip(cut)
    covered = {each for each in covered if each < cut}
    start, amount, limit = data.draw(moments), data.draw(st.integers(0, 60)), now + 50
    free = [each for each in range(start, limit) if each not in covered][:amount]
    assert intervals.after(start, amount, limit) == (free[-1] + 1 if free else start)
    assert intervals.before(now) == len(covered)


def test_a_lower_rank_takes_over() -> None:
    log_events = events("0..3@0+10#2 alive@5#2 alive@6#1 save:1@7-8#2 1@9#1 alive@10#2")
    log = columns(log_events)
    assert log.authority == 1
    assert [EventCode(code).name for code in log.code] == ["ALIVE", "SAVE_START", "SAVE_END", "STEP_START"]
    assert log.ignored == {"reported by another rank": 6}
    assert log.t[-1] == micros(9)
