from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.journal.open_journals import OpenJournal, OpenJournals
from mldiagnostics_operator.control_plane.limits import EVENT_BYTES, JOURNAL_IDLE_S, OPEN_JOURNAL_BYTES
from mldiagnostics_operator.control_plane.memory.budget import FairBudget

RUNS = 6
TOTAL = RUNS * OPEN_JOURNAL_BYTES
KEYS = st.builds(RunKey, st.sampled_from(["a", "b"]), st.sampled_from("0123456789"))


def journal(events: int) -> OpenJournal:
    history = History()
    for number in range(events):
        history.add(Event(1_790_000_000_000_000 + number, EventCode.STEP_START, number))
    return OpenJournal(open_log(str(Path("/nowhere"))), history)


@given(st.lists(st.tuples(KEYS, st.integers(0, 500), st.booleans())))
def test_memory_is_within_the_budget_and_another_namespace_always_has_room(
    uses: list[tuple[RunKey, int, bool]],
) -> None:
    budget = FairBudget(TOTAL)
    journals = OpenJournals(budget)
    kept: dict[RunKey, int] = {}
    for now_s, (key, events, is_kept) in enumerate(uses):
        before = journals.take(key)
        assert (before is not None) == (kept.pop(key, None) is not None)
        if is_kept:
            journals.keep(key, journal(events), float(now_s))
            size = OPEN_JOURNAL_BYTES + EVENT_BYTES * events
            own = sum(each for other, each in kept.items() if other.namespace == key.namespace)
            if sum(kept.values()) + own + size <= TOTAL:
                kept[key] = size
        assert budget.used == sum(kept.values()) <= TOTAL
        assert len(journals) == len(kept)
    assert budget.room(RunKey("c", "first")) > 0


def test_those_that_are_kept_stay_until_they_are_idle() -> None:
    journals = OpenJournals(FairBudget(TOTAL))
    keys = [RunKey("a", str(number)) for number in range(RUNS)]
    for round_s in (0.0, 1.0):
        for key in keys:
            journals.keep(key, journals.take(key) or journal(0), round_s)
    of_one_namespace = RUNS // 2
    assert [journals.take(key) is not None for key in keys] == [*[True] * of_one_namespace, *[False] * of_one_namespace]
    for key in keys[:of_one_namespace]:
        journals.keep(key, journal(0), 2.0)
    journals.keep(keys[-1], journal(0), 2.0 + JOURNAL_IDLE_S)
    assert [journals.take(key) is not None for key in keys] == [*[False] * (RUNS - 1), True]


@pytest.mark.parametrize("events", [10, 1000, 5000])
def test_the_charge_is_not_less_than_the_memory(events: int) -> None:
    journal(events)
    gc.collect()
    tracemalloc.start()
    try:
        many = [journal(events) for _ in range(10)]
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= sum(each.bytes for each in many) <= 4 * taken
