"""One run: its results as of any moment; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from operator import sub
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import Account
from mldiagnostics.goodput.events.event import EventCode, SliceCounts
from mldiagnostics.goodput.ledger.attempt_timeline import AttemptTimelines
from mldiagnostics.goodput.ledger.fold import Fold
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.losses import attempts_of, disruptions_of
from mldiagnostics.goodput.ledger.phases import BUCKET_OF_PHASE
from mldiagnostics.goodput.ledger.rules import BUCKETS
from mldiagnostics.goodput.ledger.segments import segments
from mldiagnostics.goodput.ledger.span_overlay import SpanOverlay
from mldiagnostics.goodput.ledger.state import NEVER
from mldiagnostics.goodput.ledger.step_durations import StepDurations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics.goodput.account import Attempt, Bucket, Disruption, StepTimes, TimelineSegment
    from mldiagnostics.goodput.buckets import BadputType
    from mldiagnostics.goodput.ledger.columns import EventColumns

_LOAD = BUCKETS[EventCode.LOAD_START].value


class RunTimeline:
    """A run: the events from row `since` of the log on, earlier than `before`.

    Times are microseconds. Every query takes a `now` and ignores later events.
    """

    def __init__(self, log: EventColumns, since: int = 0, before: int = FAR) -> None:
        self.log = log
        self.before = before
        self.fold = Fold(log, since)
        self.span_overlay = SpanOverlay(log.table)
        self.progress = AttemptTimelines(self.fold, self.span_overlay)
        self.step_durations = StepDurations(self.progress)
        self._loading: int | None = None
        """Start of an open load that runs beside the steps."""

    def account(
        self, now: int, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the sums of a window (R8) without the excluded intervals (R10)."""
        self.refresh(now)
        return self.sums(*self._window(start, end), exclude)

    def timeline(self, now: int, *, start: int | None = None, end: int | None = None) -> Iterator[TimelineSegment]:
        """Yield the segments that `account` adds up, without gaps.

        Do not call other methods before the iterator is exhausted.
        """
        self.refresh(now)
        return segments(self.progress, *self._window(start, end))

    def spans(self, now: int, bucket: BadputType) -> list[tuple[int, int]]:
        """Return the visible spans of one bucket as (start, end), in order."""
        self.refresh(now)
        seen = self.span_overlay.between(self.progress.begin, self.progress.until)
        return [(start, end) for start, end, kind in seen if kind == bucket.value]

    def attempts(self, now: int) -> list[Attempt]:
        """Return the attempts, oldest first (R2)."""
        self.refresh(now)
        return attempts_of(self)

    def disruptions(self, now: int) -> list[Disruption]:
        """Return the disruptions with their costs, oldest first."""
        self.refresh(now)
        return disruptions_of(self)

    def step_times(self, now: int) -> StepTimes:
        """Return the durations of surviving steps that a step of the same attempt follows.

        Later events change them: copy what is kept.
        """
        self.refresh(now)
        return self.step_durations.step_times()

    def ideal_step_time(self, now: int) -> int | None:
        """Return the ideal step time; None while no step is done."""
        self.refresh(now)
        return self.step_durations.ideal()

    def slices(self, now: int, start: int, end: int) -> tuple[float, float] | None:
        """Return mean shares of active and available slices; None without slice counts."""
        self.refresh(now)
        folded = self.fold.folded
        moments = [
            (t, self.log.table[arg])
            for t, code, arg in zip(folded.mark_t, folded.mark_code, folded.mark_arg, strict=True)
            if code == EventCode.SLICES
        ]
        if not moments or start >= end:
            return None
        active = available = 0.0
        for (t, counts), until in zip(moments, [t for t, _ in moments[1:]] + [end], strict=True):
            covered = max(0, min(until, end) - max(t, start))
            if covered and isinstance(counts, SliceCounts):
                active += covered * counts.active / max(counts.total, 1)
                available += covered * counts.available / max(counts.total, 1)
        return active / (end - start), available / (end - start)

    def open_step(self, now: int) -> tuple[int, int] | None:
        """Return index and start of the step that no step, restart or job end follows.

        A recorded step end does not end it: with asynchronous dispatch the program may wait for the device after it.
        """
        self.refresh(now)
        state, folded = self.fold.state, self.fold.folded
        if not folded.at or state.over or state.pending != NEVER or state.job_end >= state.last_t:
            return None
        return folded.index[-1], folded.at[-1]

    @property
    def started(self) -> int | None:
        """First job start of the run."""
        starts, _ = self.log.job_edges()
        first = bisect_left(starts, self._since_t())
        return starts[first] if first < len(starts) and starts[first] < self.before else None

    def ended(self, now: int) -> int | None:
        """Return when the job ended; None if it runs or has started again."""
        return self.log.final_end(self._since_t(), min(now, self.before - 1))

    @property
    def first_event(self) -> int | None:
        """Time of the first event."""
        return self.log.t[self.fold.since] if self.fold.since < len(self.log.t) else None

    def last_event(self, now: int) -> int | None:
        """Return the time of the last event up to `now`."""
        return self.log.last(min(now, self.before - 1))

    @property
    def ignored(self) -> Mapping[str, int]:
        """Number of ignored events by reason."""
        self._fold_up_to(FAR)
        _, contradicted = self.fold.still_open()
        return Counter(self.fold.state.ignored) + Counter({"start without end": contradicted})

    def sums(self, start: int, end: int, exclude: Sequence[tuple[int, int]] = ()) -> Account:
        """Return the account of a window within the run, as of the last `refresh`."""
        progress, folded = self.progress, self.fold.folded
        spent, overlay = self._spent(start, end)
        excluded = 0
        for left, right in _merged(exclude, start, end) if exclude else ():
            excluded_time, excluded_overlay = self._spent(left, right)
            spent = {bucket: time - excluded_time.get(bucket, 0) for bucket, time in spent.items()}
            overlay -= excluded_overlay
            excluded += right - left
        restarts = bisect_right(folded.begin, end, 1) - bisect_right(folded.begin, start, 1) if folded.begin else 0
        last_started = bisect_left(folded.at, end) - 1
        has_step = last_started >= 0 and folded.at[last_started] >= progress.begin
        productive = spent.pop(None, 0)
        return Account(
            start=start,
            end=end,
            elapsed=end - start - excluded,
            excluded=excluded,
            productive=productive,
            unproductive={bucket: time for bucket, time in spent.items() if time and bucket},
            overlay=overlay,
            disruptions=restarts + (progress.restart is not None and start < progress.restart <= end),
            max_step=progress.last_done(end),
            last_step=folded.index[last_started] if has_step else None,
        )

    def refresh(self, now: int) -> None:
        """Move to `now`, forwards or backwards, and update the results."""
        now = min(now, self.before - 1)
        end = self._fold_up_to(now)
        state, folded = self.fold.state, self.fold.folded
        opened, _ = self.fold.still_open()
        self._loading = self.fold.open_load()
        if self._loading is not None and state.moments and self._loading >= state.moments[0]:
            opened.append((self._loading, _LOAD))
            self._loading = None
        running = min(opened)[0] if opened else FAR
        since = min(folded.dirty, running)
        if since < FAR:
            spans = [*folded.spans_after(since), *((start, now, kind) for start, kind in opened if start < now)]
            self.span_overlay.rebuild(since, spans)
        folded.dirty = running
        first = self.first_event
        begin = state.started if state.started != NEVER else now if first is None else min(first, now)
        valid = self.progress.refresh(begin, now if end is None else max(begin, end), since)
        changed = bisect_left(folded.at, since) if since < FAR else FAR
        self.step_durations.forget(valid, min(changed, folded.stable_steps) - 1)
        folded.stable_steps = FAR

    def _fold_up_to(self, now: int) -> int | None:
        now = min(now, self.before - 1)
        end = self.ended(now)
        self.fold.advance(bisect_right(self.log.t, now), end)
        return end

    def _since_t(self) -> int:
        return self.log.t[self.fold.since] if self.fold.since else NEVER

    def _window(self, start: int | None, end: int | None) -> tuple[int, int]:
        begin, until = self.progress.begin, self.progress.until
        first = min(max(begin, begin if start is None else start), until)
        return first, max(first, min(until, until if end is None else end))

    def _spent(self, start: int, end: int) -> tuple[dict[Bucket | None, int], int]:
        """Return a window's time by bucket (None is productive), and its overlay."""
        before, after = self.progress.sums(start), self.progress.sums(end)
        spent = dict(zip(BUCKET_OF_PHASE, map(sub, after, before), strict=True))
        for kind, intervals in self.span_overlay.by_kind.items():
            time = intervals.before(end) - intervals.before(start)
            if time:
                bucket = self.span_overlay.bucket_of(kind)
                spent[bucket] = spent.get(bucket, 0) + time
        loads, blocking = self.fold.folded.loads, self.fold.folded.blocking
        overlay = loads.before(end) - loads.before(start) - blocking.before(end) + blocking.before(start)
        if self._loading is not None:
            overlay += max(0, end - max(start, self._loading))
        return spent, overlay


def _merged(intervals: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return the union of the intervals within [start, end), disjoint and in order."""
    merged: list[tuple[int, int]] = []
    for left, right in sorted(intervals):
        begin, until = max(left, merged[-1][1] if merged else start, start), min(right, end)
        if begin < until:
            merged.append((begin, until))
    return merged
