"""When an uploader has its next turn: after its interval, and later and later while it fails; pure."""

from __future__ import annotations

__all__ = ["LONGEST_PAUSE_S", "UploadSchedule"]

LONGEST_PAUSE_S = 300.0
"""Longest pause between two tries that fail, unless the interval itself is longer."""


class UploadSchedule:
    """The turns of one uploader; all times are seconds of one clock."""

    def __init__(self, interval_s: float, now: float) -> None:
        self._interval_s = self._pause_s = interval_s
        self.due = now + interval_s
        """When the next turn is."""

    def took_turn(self, now: float, *, well: bool) -> None:
        """Say that a turn is over, and whether it did what it should."""
        longest = max(self._interval_s, LONGEST_PAUSE_S)
        self._pause_s = self._interval_s if well else min(longest, max(1.0, self._pause_s * 2))
        self.due = now + self._pause_s
