"""Sorting of many numbers, and durations of many steps, equal those of few."""

from __future__ import annotations

from array import array
from random import Random
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.ledger import Ledger
from mldiagnostics.goodput.ledger.sorting import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MANY = 200_000
S = 1_000_000
DICE = Random(6)
LIKE: dict[str, Callable[[], Sequence[int]]] = {
    "none": list,
    "one": lambda: [7],
    "equal": lambda: [S] * MANY,
    "rising": lambda: range(MANY),
    "falling": lambda: range(MANY, 0, -1),
    "in turns": lambda: [number % 1024 for number in range(MANY)],
    "one in a hundred": lambda: [10 * S if number % 64 == 0 else S + number % 50 for number in range(MANY)],
    "anything": lambda: [DICE.randrange(-(2**62), 2**62) for _ in range(MANY)],
    "around a mean": lambda: [int(DICE.gauss(2 * S, 1000)) for _ in range(1 << 17)],
}


@pytest.mark.parametrize("numbers_like", LIKE.values(), ids=LIKE)
def test_many_numbers_are_sorted(numbers_like: Callable[[], Sequence[int]]) -> None:
    numbers = numbers_like()
    column = array("q", numbers)
    assert in_order(column) == array("q", sorted(numbers))
    assert column == array("q", numbers)


def test_spans_among_many_steps_do_not_count_for_their_durations() -> None:
    ledger, starts = Ledger(splits=False), array("q", range(0, 140_000 * S, S))
    ledger.extend(array("q", [0]), bytes([EventCode.JOB_START]), array("i", [0]))
    ledger.extend(starts, bytes([EventCode.STEP_START]) * len(starts), array("i", range(len(starts))))
    expected = [S] * (len(starts) - 1)
    for first in (10, 65_534, 131_071):  # from the middle of a step to that of the next but one
        for at, code in (
            (first * S + S // 2, EventCode.CUSTOM_START),
            ((first + 2) * S + S // 2, EventCode.CUSTOM_END),
        ):
            ledger.add(Event(at, code, "EVAL"))
        expected[first : first + 3] = [S // 2, 0, S // 2]
    assert list(ledger.step_times(starts[-1]).durations) == expected
