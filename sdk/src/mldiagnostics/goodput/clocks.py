"""Correct the events of a process whose host's clock was set while it recorded; pure.

A recorder compares the wall clock of its host with a clock that nobody sets. Where they differ by another amount than
before, it records by how much the wall clock was set: `clock_step_us`. All events that the process recorded before that
are moved by as much, so that they are apart as its steady clock has it, and comparable with what follows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CLOCK_STEP", "Clocks"]

CLOCK_STEP = "clock_step_us"
"""Key of the microseconds by which the clock was set, positive for forwards."""

_ID = re.compile(r"([0-9a-f]{1,32})-([0-9]{1,18})")
_MOST_US = 10**16
"""Some three hundred years."""


class Clocks:
    """By how much the clocks of processes were set, and before which of their events.

    `event_id` of a payload is `<process>-<number>`, with numbers that rise in the order in which events were recorded.
    """

    def __init__(self) -> None:
        self._steps: dict[str, dict[int, int]] = {}
        self.changed = False
        """Whether a new step was read that may move events which were fed before."""

    def __bool__(self) -> bool:
        return bool(self._steps)

    def learn(self, payload: Mapping[str, Any]) -> None:
        """Read from a payload by how much a clock was set; skip any other payload."""
        step, found = payload.get(CLOCK_STEP), _process(payload.get("event_id"))
        if found is None or type(step) is not int or not 0 < abs(step) < _MOST_US:
            return
        process, number = found
        known = self._steps.setdefault(process, {})
        if number not in known:
            known[number] = step
            self.changed = True

    def shift(self, event_id: object) -> int:
        """Return by how many microseconds an event is to be moved."""
        found = _process(event_id)
        if found is None or found[0] not in self._steps:
            return 0
        return sum(step for number, step in self._steps[found[0]].items() if number > found[1])

    def packed(self) -> dict[str, list[list[int]]]:
        """Return it in JSON's types."""
        return {process: [[number, step] for number, step in steps.items()] for process, steps in self._steps.items()}

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Clocks:
        """Return what was packed. Raises `AttributeError`, `TypeError` or `ValueError` for anything else."""
        clocks = cls()
        for process, steps in packed.items():
            clocks._steps[str(process)] = {int(number): int(step) for number, step in steps}
        return clocks


def _process(event_id: object) -> tuple[str, int] | None:
    found = _ID.fullmatch(event_id) if isinstance(event_id, str) else None
    return None if found is None else (found[1], int(found[2]))
