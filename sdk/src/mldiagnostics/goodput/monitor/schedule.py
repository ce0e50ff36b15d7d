"""The schedule of an uploader: its interval, with back-off while it fails; pure."""

from __future__ import annotations

LONGEST_PAUSE_S = 300.0
"""Longest pause after a failure, unless the interval is longer."""


class UploadSchedule:
    """Schedule of one uploader; times are seconds of one clock."""

    def __init__(self, interval_s: float, now: float) -> None:
        self._interval_s = self._pause_s = interval_s
        self.due = now + interval_s
        """Time of the next upload."""

    def record_result(self, now: float, *, success: bool) -> None:
        """Record the result of an upload and set the next time."""
        max_pause = max(self._interval_s, LONGEST_PAUSE_S)
        self._pause_s = self._interval_s if success else min(max_pause, max(1.0, self._pause_s * 2))
        self.due = now + self._pause_s
