"""The goodput ledger: exact division of the time of a job; pure.

Events may come in any order. The rules R1 to R14 are in docs/goodput.md; docs/decisions/0009 decides where they leave a
choice. The modules, from events to sums:

* `columns`: events sorted by time (R6), each once, of one rank (docs/decisions/0009 "Several ranks").
* `run_splitter`: the runs of a log without run ids.
* `fold`, `event_handlers`, `state`: events to attempts (R2), steps and spans, forwards and backwards in time.
* `span_overlay`, `intervals`: one visible span at each moment (R5, R12, R13).
* `phases`, `attempt_timeline`: the phases of each attempt: startup, productive, wasted, recovery (R3, R4, R7).
* `run_timeline`: accounts (R1, R8, R10), and `segments`, `losses`, `step_durations` for the other results.
"""

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
    from mldiagnostics.goodput.events.event import Event

__all__ = ["Ledger", "RunTimeline"]


class Ledger:
    """The events of a job and the results from them.

    Times are whole microseconds of POSIX time.
    Every query takes a `now` and ignores later events; an earlier `now` than before costs about as much as folding the
    events between them. Not thread-safe.

    Args:
        splits: the log has no run ids, so a job start after a recorded job end begins another run. Queries then are
            about the newest run as of `now`; `runs` returns all of them.
    """

    def __init__(self, *, splits: bool) -> None:
        self.log = EventColumns()
        self._runs = RunSplitter(self.log, splits=splits)

    def add(self, event: Event) -> None:
        """Add an event; its run id is ignored."""
        self._invalidate(self.log.add(event))

    def extend(
        self, times: array[int], codes: bytes | bytearray | array[int], args: array[int], *, rank: int = 0
    ) -> None:
        """Add many events of one rank, in any order.

        Raises:
            ValueError: a code has an argument that is not a number, or the columns differ in length.
        """
        self._invalidate(self.log.extend(times, codes, args, rank=rank))

    def runs(self, now: int) -> Sequence[RunTimeline]:
        """Return the runs that began by `now`, oldest first; valid until the next `add`."""
        return self._runs.as_of(now)

    def account(
        self, now: int, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the sums of a window (R8) without the excluded intervals (R10).

        Args:
            now: query time.
            start: start of the window; the start of the run if None.
            end: end of the window; the end of the run, or `now`, if None.
            exclude: intervals (start, end) to leave out.
        """
        return self._newest(now).account(now, start=start, end=end, exclude=exclude)

    def timeline(self, now: int, *, start: int | None = None, end: int | None = None) -> Iterator[TimelineSegment]:
        """Yield the segments that `account` adds up, without gaps.

        Do not call other methods before the iterator is exhausted.
        """
        return self._newest(now).timeline(now, start=start, end=end)

    def spans(self, now: int, bucket: BadputType) -> list[tuple[int, int]]:
        """Return the visible spans of one bucket as (start, end), in order."""
        return self._newest(now).spans(now, bucket)

    def attempts(self, now: int) -> list[Attempt]:
        """Return the attempts, oldest first (R2)."""
        return self._newest(now).attempts(now)

    def disruptions(self, now: int) -> list[Disruption]:
        """Return the disruptions with their costs, oldest first."""
        return self._newest(now).disruptions(now)

    def step_times(self, now: int) -> StepTimes:
        """Return the durations of surviving steps that a step of the same attempt follows."""
        return self._newest(now).step_times(now)

    def ideal_step_time(self, now: int) -> int | None:
        """Return the mean step duration up to median + 3 MAD; None while no step is done."""
        return self._newest(now).ideal_step_time(now)

    def slices(self, now: int, start: int, end: int) -> tuple[float, float] | None:
        """Return mean shares of active and available slices; None without slice counts."""
        return self._newest(now).slices(now, start, end)

    def open_step(self, now: int) -> tuple[int, int] | None:
        """Return index and start of the running step."""
        return self._newest(now).open_step(now)

    @property
    def known_runs(self) -> list[RunTimeline]:
        """Runs that the last query has found."""
        return self._runs.known

    @property
    def first_event(self) -> int | None:
        """Time of the first event."""
        return self.log.t[0] if self.log.t else None

    def last_event(self, now: int) -> int | None:
        """Return the time of the last event up to `now`."""
        return self.log.last(now)

    def dump(self, file: BinaryIO) -> None:
        """Write the ledger to a binary file, for `load`."""
        snapshot.dump(self.log, self._runs.known, file, splits=self._runs.splits)

    @classmethod
    def load(cls, file: BinaryIO) -> Ledger:
        """Read a ledger that `dump` has written.

        Raises:
            ValueError: the file is not such a ledger, or it is damaged.
        """
        ledger = cls(splits=False)
        ledger._runs.splits = snapshot.load(ledger.log, ledger._runs.known, file)
        return ledger

    @property
    def started(self) -> int | None:
        """First job start of the newest run."""
        return self._last().started

    def ended(self, now: int) -> int | None:
        """Return when the job ended; None if it runs or has started again."""
        return self._newest(now).ended(now)

    @property
    def ignored(self) -> Mapping[str, int]:
        """Number of ignored events by reason."""
        self._last()
        return sum((Counter(run.ignored) for run in self._runs.known), Counter(self.log.ignored))

    def _newest(self, now: int) -> RunTimeline:
        return self._runs.as_of(now)[-1]

    def _last(self) -> RunTimeline:
        return self._newest(self.log.t[-1] if self.log.t else 0)

    def _invalidate(self, first: int | None) -> None:
        if first is not None:
            self._runs.changed(first)
