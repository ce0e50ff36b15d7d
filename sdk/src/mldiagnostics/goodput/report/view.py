"""What a report is made from: one run's history as the ledger answers for it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics.goodput.account import Account, Attempt, Disruption, StepTimes, TimelineSegment
    from mldiagnostics.goodput.buckets import BadputType

__all__ = ["RunView"]


class RunView(Protocol):
    """One run's history. All moments and lengths are microseconds."""

    @property
    def ignored(self) -> Mapping[str, int]:
        """What is not believed: reason -> how often."""
        ...

    @property
    def started(self) -> int | None:
        """When the job first started, of all that is known."""
        ...

    def ended(self, now: int, /) -> int | None:
        """Return the recorded end of the job."""
        ...

    def account(
        self, now: int, /, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return a stretch of the job's life, divided."""
        ...

    def timeline(self, now: int, /, *, start: int | None = None, end: int | None = None) -> Iterable[TimelineSegment]:
        """Return the pieces that the account of the stretch sums."""
        ...

    def spans(self, now: int, bucket: BadputType, /) -> Sequence[tuple[int, int]]:
        """Return when events of one bucket are seen in the timeline, in order."""
        ...

    def attempts(self, now: int, /) -> Sequence[Attempt]:
        """Return the attempts, the oldest first."""
        ...

    def disruptions(self, now: int, /) -> Sequence[Disruption]:
        """Return the disruptions, the oldest first."""
        ...

    def step_times(self, now: int, /) -> StepTimes:
        """Return the durations of the steps that count."""
        ...

    def ideal_step_time(self, now: int, /) -> int | None:
        """Return what a step takes when nothing is wrong."""
        ...

    def slices(self, now: int, start: int, end: int, /) -> tuple[float, float] | None:
        """Return stepping and available slice efficiency of an elastic job."""
        ...

    def open_step(self, now: int, /) -> tuple[int, int] | None:
        """Return index and begin of the step that is running."""
        ...
