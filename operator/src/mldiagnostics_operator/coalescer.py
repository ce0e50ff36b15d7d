"""Coalesce changes of one object: when the newest value is sent, decided without I/O and without a clock."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Coalescer(Generic[T]):
    """Holds the newest value until it is due: at once if urgent, else one interval after the first change.

    So values that are not urgent are sent at most once per interval, and a burst of changes is sent once. All times
    are seconds of one monotonic clock.
    """

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._value: T | None = None
        self._sending: T | None = None
        self.due_at: float | None = None
        """When the held value is due; None if there is no such value."""

    def put(self, value: T, *, now: float, urgent: bool = False) -> None:
        """Hold a value in place of an earlier one, which is never sent if it was not taken yet."""
        due_at = now if urgent else now + self._interval_s
        self.due_at = due_at if self.due_at is None else min(self.due_at, due_at)
        self._value, self._sending = value, None

    def take(self, *, now: float) -> T | None:
        """Return the value to send now, or None."""
        if self.due_at is None or now < self.due_at:
            return None
        self._sending, self._value, self.due_at = self._value, None, None
        return self._sending

    def put_back(self, *, now: float) -> None:
        """Hold the value that was taken last for one more interval, unless there is a newer one."""
        if self._sending is not None:
            self.put(self._sending, now=now)

    def clear(self) -> None:
        """Drop the value: the caller sends a newer one by itself."""
        self._value = self._sending = self.due_at = None
