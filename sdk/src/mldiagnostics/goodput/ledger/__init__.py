"""Every second of a job accounted for, exactly, from events in any order; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mldiagnostics.goodput.ledger import snapshot
from mldiagnostics.goodput.ledger.columns import EventColumns
from mldiagnostics.goodput.ledger.run_splitter import RunSplitter
from mldiagnostics.goodput.ledger.run_timeline import RunTimeline

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    from mldiagnostics.goodput.account import Account, Attempt, Disruption, StepTimes, TimelineSegment
    from mldiagnostics.goodput.buckets import BadputType
    from mldiagnostics.goodput.events import Event

__all__ = ["Ledger", "RunTimeline"]


class Ledger:
    """The events of a job, and what is asked of them. All times are whole microseconds of POSIX time.

    `splits`: the log has no run ids, a job start after a recorded job end begins another run; answers are about the
    newest one as of `now`, `lives` has all. Each question is answered as of its `now`, as if nothing later were known;
    going back costs about as much as folding what lies between. Not to be used by two threads at once.
    """

    def __init__(self, *, splits: bool) -> None:
        self.log = EventColumns()
        self._lives = RunSplitter(self.log, splits=splits)

    def add(self, event: Event) -> None:
        """Take an event in; its run id is not looked at."""
        self._changed(self.log.add(event))

    def extend(
        self, times: array[int], codes: bytes | bytearray | array[int], args: array[int], *, rank: int = 0
    ) -> None:
        """Take many events of one rank in, in any order: only codes whose argument is a number.

        Raises `ValueError` for another code, or for columns that are not equally long.
        """
        self._changed(self.log.extend(times, codes, args, rank=rank))

    def lives(self, now: int) -> Sequence[RunTimeline]:
        """Return the runs that have begun by `now`, oldest first: good until the next event comes."""
        return self._lives.as_of(now)

    def account(
        self, now: int, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the sums of a stretch of the job's life, without what is excluded."""
        return self._newest(now).account(now, start=start, end=end, exclude=exclude)

    def timeline(self, now: int, *, start: int | None = None, end: int | None = None) -> Iterator[TimelineSegment]:
        """Return what the job did, piece by piece without a gap: what `account` adds up. Ask nothing else meanwhile."""
        return self._newest(now).timeline(now, start=start, end=end)

    def spans(self, now: int, bucket: BadputType) -> list[tuple[int, int]]:
        """Return when events of one bucket are seen in the timeline, as starts and ends in order."""
        return self._newest(now).spans(now, bucket)

    def attempts(self, now: int) -> list[Attempt]:
        """Return what each attempt did."""
        return self._newest(now).attempts(now)

    def disruptions(self, now: int) -> list[Disruption]:
        """Return what each disruption cost."""
        return self._newest(now).disruptions(now)

    def step_times(self, now: int) -> StepTimes:
        """Return how long the steps took that are done, not lost, and followed by one of their attempt."""
        return self._newest(now).step_times(now)

    def ideal_step_time(self, now: int) -> int | None:
        """Return how long a step usually takes: the mean up to median + 3 MAD; None while no step is done."""
        return self._newest(now).ideal_step_time(now)

    def slices(self, now: int, start: int, end: int) -> tuple[float, float] | None:
        """Return active and available slices as a share of all, on average; None if none is told."""
        return self._newest(now).slices(now, start, end)

    def open_step(self, now: int) -> tuple[int, int] | None:
        """Return index and start of the step that is running."""
        return self._newest(now).open_step(now)

    @property
    def splits(self) -> bool:
        """Whether one log may have several runs."""
        return self._lives.splits

    @splits.setter
    def splits(self, splits: bool) -> None:
        self._lives.splits = splits

    @property
    def known_lives(self) -> list[RunTimeline]:
        """The runs as far as they were asked for."""
        return self._lives.known

    @property
    def first_event(self) -> int | None:
        """When the first event of all was."""
        return self.log.t[0] if self.log.t else None

    def last_event(self, now: int) -> int | None:
        """Return when the last event up to `now` was."""
        return self.log.last(now)

    def dump(self, file: BinaryIO) -> None:
        """Write all that is known, for `load`."""
        snapshot.dump(self, file)

    @classmethod
    def load(cls, file: BinaryIO) -> Ledger:
        """Read what `dump` has written. Raises `ValueError` saying what is wrong with anything else."""
        ledger = cls(splits=False)
        snapshot.load(ledger, file)
        return ledger

    @property
    def started(self) -> int | None:
        """When the job (the newest run of all that is known) first started."""
        return self._last().started

    def ended(self, now: int) -> int | None:
        """Return when the job ended; None if it has not, or has started again."""
        return self._newest(now).ended(now)

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many of all events that are known count for nothing, by reason."""
        self._last()
        return sum((Counter(life.ignored) for life in self._lives.known), Counter(self.log.ignored))

    def _newest(self, now: int) -> RunTimeline:
        return self._lives.as_of(now)[-1]

    def _last(self) -> RunTimeline:
        return self._newest(self.log.t[-1] if self.log.t else 0)

    def _changed(self, place: int | None) -> None:
        if place is not None:
            self._lives.changed(place)
