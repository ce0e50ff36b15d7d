"""Coalesce changes of one object: decide when the newest value is sent."""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")


class Coalescer(Generic[T]):
    """Holds the newest value until it is due.

    A value is due one interval after the first change, an urgent one sooner. So values that are not urgent are sent at
    most once per interval, and a burst of changes is sent once. All times are seconds of one monotonic clock.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._value: T | None = None
        self._sending: T | None = None
        self.due_at: float | None = None
        """Time at which the held value is due; None without a value."""

    def put(self, value: T, *, now: float, within_s: float = math.inf) -> None:
        """Hold a value, in place of an earlier one that was not taken yet.

        It is due after the interval, or after `within_s` if that is shorter.
        """
        due_at = now + min(self._interval_s, within_s)
        self.due_at = due_at if self.due_at is None else min(self.due_at, due_at)
        self._value, self._sending = value, None

    def take(self, *, now: float) -> T | None:
        """Return the value to send now, or None."""
        if self.due_at is None or now < self.due_at:
            return None
        self._sending, self._value, self.due_at = self._value, None, None
        return self._sending

    def put_back(self, *, now: float) -> None:
        """Hold the value that was taken last for another interval, if it is the newest."""
        if self._sending is not None:
            self.put(self._sending, now=now)

    def clear(self) -> None:
        """Drop the value, because the caller sends a newer one itself."""
        self._value = self._sending = self.due_at = None
