"""Worked traces with their expected results, for the oracle and the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.events.conversion import parse
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.history import History
from support.goodput.notation import Query, Trace, entries, events, micros, summary, traces
from support.goodput.oracle import Oracle
from support.goodput.reading import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.account import Account

DATA = Path(__file__).parent / "data"
SAMPLES = traces(DATA / "samples.txt")
WORKED = traces(DATA / "worked.txt")
QUERIES = [
    pytest.param(trace, query, id=f"{trace.name}-{query.line.partition(':')[0]}".replace(" ", "_"))
    for trace in SAMPLES + WORKED
    for query in trace.queries
]


def window(query: Query) -> tuple[int | None, int | None]:
    start, end = query.window
    return None if start is None else micros(start), None if end is None else micros(end)


def excluded(query: Query) -> Sequence[tuple[int, int]]:
    return [(micros(start), micros(end)) for start, end in query.without]


def check_account(account: Account, query: Query) -> None:
    assert summary(account) == pytest.approx(query.answer)
    assert account.productive + sum(account.unproductive.values()) == account.elapsed


@pytest.mark.parametrize(("trace", "query"), QUERIES)
def test_the_oracle_equals_the_expected_results(trace: Trace, query: Query) -> None:
    now, (start, end) = micros(query.now), window(query)
    run = runs([entry.event for entry in trace.entries], now)[query.run]
    check_account(Oracle(run, now).account(start=start, end=end, exclude=excluded(query)), query)


@pytest.mark.parametrize("trace", SAMPLES + WORKED, ids=lambda trace: trace.name.replace(" ", "_"))
def test_logged_events_are_read_back_unchanged(trace: Trace) -> None:
    for entry in trace.entries:
        if entry.event.code is not EventCode.ALIVE:
            assert parse(entry.payload) == (entry.event,)


@pytest.mark.parametrize(("trace", "query"), QUERIES)
def test_the_ledger_equals_the_expected_results(trace: Trace, query: Query) -> None:
    now, (start, end) = micros(query.now), window(query)
    history = History()
    for entry in trace.entries:
        history.add(entry.event)
    run = history.runs(now)[query.run]
    check_account(history.of(now, run).account(now, start=start, end=end, exclude=excluded(query)), query)


def test_times_in_milliseconds_are_ignored_and_the_rest_is_right() -> None:
    """An hour that one part of a program counts in milliseconds is not an hour of the year 56 963."""
    ledger = Ledger(splits=True)
    reasons = []
    for entry in entries("job@0 0@5 1@15 end@25"):
        ledger.add(entry.event)
        wrong = {key: value * 1000 if key.endswith("_time") else value for key, value in entry.payload.items()}
        reasons.append(parse(wrong))
    assert reasons == ["bad time"] * 4
    assert summary(ledger.account(micros(30))) == {"ok": 20, "other": 5, "of": 25, "max": 1}


LOSSES = {
    "a restart from a checkpoint": (
        "job@0 0..4@5+10 cause:preemption@48 job@70 tpu@70-74 prep@75-85 restore@78-83 2@90 3@120 4@130 5@140",
        {"lost": 45, "restarted": 70, "resumed": 90, "cause": "preemption", "steps_lost": 2, "wasted": 20},
        {"init": 9, "restore": 5, "first_step": 20, "detect": 3, "reschedule": 22, "recovered": 65},
    ),
    "all progress preserved": (
        "job@0 0..4@5+10 alive@60 job@100 5@110 6@120 7@130",
        {"lost": 55, "restarted": 100, "resumed": 110, "cause": "unknown", "steps_lost": 0, "wasted": 0},
        {"init": 0, "restore": 0, "first_step": 0, "detect": 5, "reschedule": 40, "recovered": 55},
    ),
    "no step yet": (
        "job@0 0..4@5+10 job@100 tpu@101-103",
        {"lost": 45, "restarted": 100, "resumed": None, "cause": "unknown", "steps_lost": 0, "wasted": 0},
        {"init": 2, "restore": 0, "first_step": 0, "recovered": 95},
    ),
    "a cause that is recorded after the restart does not count": (
        "job@0 0..2@5+10 cause:preemption@28 job@40 cause:maintenance@42 2@50 3@60",
        {"lost": 25, "restarted": 40, "resumed": 50, "cause": "preemption", "steps_lost": 0, "wasted": 0},
        {"init": 0, "restore": 0, "first_step": 0, "detect": 3, "reschedule": 12, "recovered": 25},
    ),
    "a restart sooner than a preserved step takes": (
        "job@0 0@5 1@15 job@20 tpu@22-24 2@30 3@40",
        {"lost": 20, "restarted": 20, "resumed": 30, "cause": "unknown", "steps_lost": 0, "wasted": 0},
        {"init": 2, "restore": 0, "first_step": 0, "detect": 0, "reschedule": 0, "recovered": 10},
    ),
    "an elastic wait": (
        "job@0 0..3@5+10 down@47-67 reinit@67-87 tpu@68-71 2@90 3@100 4@110",
        {"lost": 35, "restarted": 67, "resumed": 90, "cause": "slice_down", "steps_lost": 1, "wasted": 10},
        {"init": 20, "restore": 0, "first_step": 0, "recovered": 55},
    ),
    "an elastic wait after which no step is made again": (
        "job@0 0..3@5+10 down@47-67 reinit@67-87 4@90 5@100 end@110",
        {"lost": 45, "restarted": 67, "resumed": 90, "cause": "slice_down", "steps_lost": 0, "wasted": 0},
        {"init": 20, "restore": 0, "first_step": 0, "detect": 2, "reschedule": 20, "recovered": 45},
    ),
    "a re-initialisation that has come to no step": (
        "job@0 0..3@5+10 down@47-67 reinit@67-87",
        {"lost": 35, "restarted": 67, "resumed": None, "cause": "slice_down", "steps_lost": 0, "wasted": 0},
        {"init": 20, "restore": 0, "first_step": 0, "recovered": 105},
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_disruption_has_its_phases(name: str) -> None:
    words, where, phases = LOSSES[name]
    ledger = Ledger(splits=False)
    for event in events(words):
        ledger.add(event)
    (disruption,) = ledger.disruptions(micros(140))
    for field, value in where.items():
        moment = field in ("lost", "restarted", "resumed") and value is not None
        expected = micros(float(value)) if moment else round(value * 1e6) if field == "wasted" else value
        assert (field, getattr(disruption, field)) == (field, expected)
    for field, seconds in phases.items():
        assert (field, getattr(disruption, field)) == (field, round(seconds * 1e6))


@pytest.mark.parametrize(
    ("words", "ideal"),
    [
        ("0@0 1@12 2@22 3@39 4@49 5@61 6@91 7@105", 12.5),  # median 12, MAD 2: 17 is usual, 30 is not
        ("0@0 1@0.2 2@0.5 3@2.5 4@6.5 5@9.5", 3),  # steps below a second do not count where they are the minority
        ("0@0 1@0.2 2@0.6 3@1.1 4@1.5 5@21.5", 0.375),
        ("0@0 1@0.5 2@1 3@5 4@9", 2.25),  # half of them are not a minority
        ("0@0 1@0.2 2@0.6", 0.3),
        ("0@0", None),
    ],
)
def test_ideal_step_time(words: str, ideal: float | None) -> None:
    ledger = Ledger(splits=False)
    for event in events(words):
        ledger.add(event)
    assert ledger.ideal_step_time(micros(200)) == (None if ideal is None else ideal * 1e6)
