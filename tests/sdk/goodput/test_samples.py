"""Worked traces, with what is right of each: by the oracle's reading of the rules and by the ledger."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.goodput_notation import Query, Trace, micros, summary, traces
from support.goodput_oracle import Oracle
from support.goodput_reading import runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.account import Account

DATA = Path(__file__).parent / "data"
SAMPLES = traces(DATA / "samples.txt")
WORKED = traces(DATA / "worked.txt")
ASKED = [
    pytest.param(trace, query, id=f"{trace.name}-{query.line.partition(':')[0]}".replace(" ", "_"))
    for trace in SAMPLES + WORKED
    for query in trace.queries
]


def stretch(query: Query) -> tuple[int | None, int | None]:
    start, end = query.window
    return None if start is None else micros(start), None if end is None else micros(end)


def excluded(query: Query) -> Sequence[tuple[int, int]]:
    return [(micros(start), micros(end)) for start, end in query.without]


def judged(account: Account, query: Query) -> None:
    assert summary(account) == pytest.approx(query.answer)
    assert account.productive + sum(account.unproductive.values()) == account.elapsed


@pytest.mark.parametrize(("trace", "query"), ASKED)
def test_the_oracle_knows_what_is_right(trace: Trace, query: Query) -> None:
    now, (start, end) = micros(query.now), stretch(query)
    run = runs([entry.event for entry in trace.entries], now)[query.run]
    judged(Oracle(run, now).account(start=start, end=end, exclude=excluded(query)), query)
