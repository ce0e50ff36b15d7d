"""The two ways to account for a job's time, as the calculator sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.answer import GoodputResult, Unproductive

__all__ = ["Accounting", "StepSeries"]


class StepSeries(NamedTuple):
    """Steps by their index, the seconds that each took, and those it should take; None if that cannot be told."""

    steps: Sequence[int]
    durations: Sequence[float]
    ideal: float | None

    def deviations(self, ideal: float) -> dict[int, float]:
        """Return by how many seconds each step is off an ideal."""
        return dict(zip(self.steps, [abs(duration - ideal) for duration in self.durations], strict=True))


class Accounting(Protocol):
    """Answers as of `now`; all times are POSIX seconds."""

    def cumulative(self, now: float) -> GoodputResult:
        """Return the account of the whole job. Raises ValueError if no job start is known."""

    def interval(self, start: float, end: float, now: float) -> GoodputResult:
        """Return the account of a window. Raises ValueError if nothing of the job lies in it."""

    def excluding(self, windows: Sequence[tuple[float, float]], now: float) -> GoodputResult:
        """Return the account of the job without the time in normalized windows; elapsed may be 0."""

    def breakdown(self, answer: GoodputResult) -> Unproductive:
        """Return the buckets of an answer in per cent."""

    def steps(self, now: float) -> StepSeries:
        """Return how long steps took."""

    def slices(self, now: float, window: tuple[float, float] | None = None) -> tuple[float, float] | None:
        """Return which shares (0-1) of an elastic job's slices stepped, and could; None without any record."""
