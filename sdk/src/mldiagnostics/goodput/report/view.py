"""`RunView`: the results of a run that a report needs; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mldiagnostics.goodput.account import Account, Attempt, Disruption, StepTimes, TimelineSegment
    from mldiagnostics.goodput.buckets import BadputType


class RunView(Protocol):
    """Results of one run. Times are microseconds."""

    @property
    def ignored(self) -> Mapping[str, int]:
        """Number of ignored events by reason."""
        ...

    @property
    def started(self) -> int | None:
        """First job start."""
        ...

    def ended(self, now: int, /) -> int | None:
        """Return the recorded end of the job."""
        ...

    def account(
        self, now: int, /, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the account of a window."""
        ...

    def timeline(self, now: int, /, *, start: int | None = None, end: int | None = None) -> Iterable[TimelineSegment]:
        """Return the segments that the account of the window adds up."""
        ...

    def spans(self, now: int, bucket: BadputType, /) -> Sequence[tuple[int, int]]:
        """Return the visible spans of one bucket as (start, end), in order."""
        ...

    def attempts(self, now: int, /) -> Sequence[Attempt]:
        """Return the attempts, the oldest first."""
        ...

    def disruptions(self, now: int, /) -> Sequence[Disruption]:
        """Return the disruptions, the oldest first."""
        ...

    def step_times(self, now: int, /) -> StepTimes:
        """Return the durations of surviving steps."""
        ...

    def ideal_step_time(self, now: int, /) -> int | None:
        """Return the ideal step time."""
        ...

    def slices(self, now: int, start: int, end: int, /) -> tuple[float, float] | None:
        """Return stepping and available slice efficiency of an elastic job."""
        ...

    def open_step(self, now: int, /) -> tuple[int, int] | None:
        """Return index and start of the running step."""
        ...
