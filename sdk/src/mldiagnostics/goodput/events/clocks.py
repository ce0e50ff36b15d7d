"""Correction of events after the clock of a host was set; pure.

A recorder compares the wall clock of its host with a steady clock. When their difference changes, it records by how
much the wall clock was set: `clock_step_us`. All earlier events of the process are moved by the same amount. Their
distances are then those of the steady clock, and they are comparable with later events.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


CLOCK_STEP = "clock_step_us"
"""Key of the microseconds by which the clock was set; positive is forwards."""

_ID = re.compile(r"([0-9a-f]{1,32})-([0-9]{1,18})")
MOST_US = 10**16
"""About three hundred years."""


class Clocks:
    """The times at which the clocks of processes were set, and by how much.

    The `event_id` of a payload is `<process>-<number>`; numbers rise in the order in which events were recorded.
    """

    def __init__(self) -> None:
        self._steps: dict[str, dict[int, int]] = {}
        self._sums: dict[str, tuple[list[int], list[int]]] = {}
        """Sorted numbers of the steps of a process, and by how much each and all later ones move."""
        self.changed = False
        """Whether a clock step was read that can move earlier events."""

    def __bool__(self) -> bool:
        return bool(self._steps)

    def learn(self, payload: Mapping[str, Any]) -> None:
        """Read the clock step of a payload; skip any other payload."""
        step, origin = payload.get(CLOCK_STEP), _process(payload.get("event_id"))
        if origin is None or type(step) is not int or not 0 < abs(step) < MOST_US:
            return
        process, number = origin
        known = self._steps.setdefault(process, {})
        if number not in known:
            known[number] = step
            self._sums.pop(process, None)
            self.changed = True

    def shift(self, event_id: object) -> int:
        """Return the microseconds by which an event has to be moved."""
        origin = _process(event_id)
        if origin is None or origin[0] not in self._steps:
            return 0
        process, number = origin
        numbers, sums = self._sums.get(process) or self._summed(process)
        after = bisect_right(numbers, number)
        return sums[after] if after < len(sums) else 0

    def _summed(self, process: str) -> tuple[list[int], list[int]]:
        steps = self._steps[process]
        numbers = sorted(steps)
        sums = [*accumulate(steps[number] for number in reversed(numbers))][::-1]
        self._sums[process] = numbers, sums
        return numbers, sums

    def packed(self) -> dict[str, list[list[int]]]:
        """Return the clocks as JSON types."""
        return {process: [[number, step] for number, step in steps.items()] for process, steps in self._steps.items()}

    @classmethod
    def unpacked(cls, packed: Mapping[str, Any]) -> Clocks:
        """Return the clocks that `packed` returned.

        Raises `AttributeError`, `TypeError` or `ValueError` for any other value.
        """
        clocks = cls()
        for process, steps in packed.items():
            clocks._steps[str(process)] = {int(number): int(step) for number, step in steps}
        return clocks


def _process(event_id: object) -> tuple[str, int] | None:
    match = _ID.fullmatch(event_id) if isinstance(event_id, str) else None
    return None if match is None else (match[1], int(match[2]))
