"""One run: its events up to a moment, and everything that is asked of them; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from operator import sub
from typing import TYPE_CHECKING

from mldiagnostics.goodput.account import Account
from mldiagnostics.goodput.events import EventCode, SliceCounts
from mldiagnostics.goodput.ledger.attempt_timeline import SPENT, AttemptTimelines
from mldiagnostics.goodput.ledger.fold import Fold
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.losses import attempts_of, disruptions_of
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
    """A run whose events begin at place `since` of the log and are earlier than `before`.

    Times are microseconds. Each question is answered as of `now`, as if nothing later were known.
    """

    def __init__(self, log: EventColumns, since: int = 0, before: int = FAR) -> None:
        self.log = log
        self.before = before
        self.fold = Fold(log, since)
        self.painting = SpanOverlay(log.table)
        self.progress = AttemptTimelines(self.fold, self.painting)
        self.pace = StepDurations(self.progress)
        self._loading: int | None = None
        """Since when a load goes on beside the steps."""

    def account(
        self, now: int, *, start: int | None = None, end: int | None = None, exclude: Sequence[tuple[int, int]] = ()
    ) -> Account:
        """Return the sums of a stretch of the job's life, without what is excluded."""
        self.refresh(now)
        return self.sums(*self._stretch(start, end), exclude)

    def timeline(self, now: int, *, start: int | None = None, end: int | None = None) -> Iterator[TimelineSegment]:
        """Return what the job did, piece by piece without a gap: what `account` adds up. Ask nothing else meanwhile."""
        self.refresh(now)
        return segments(self.progress, *self._stretch(start, end))

    def spans(self, now: int, bucket: BadputType) -> list[tuple[int, int]]:
        """Return when events of one bucket are seen in the timeline, as starts and ends in order."""
        self.refresh(now)
        seen = self.painting.between(self.progress.begin, self.progress.until)
        return [(start, end) for start, end, kind in seen if kind == bucket.value]

    def attempts(self, now: int) -> list[Attempt]:
        """Return what each attempt did."""
        self.refresh(now)
        return attempts_of(self)

    def disruptions(self, now: int) -> list[Disruption]:
        """Return what each disruption cost."""
        self.refresh(now)
        return disruptions_of(self)

    def step_times(self, now: int) -> StepTimes:
        """Return how long the steps took."""
        self.refresh(now)
        return self.pace.step_times()

    def ideal_step_time(self, now: int) -> int | None:
        """Return how long a step usually takes; None while none is done."""
        self.refresh(now)
        return self.pace.ideal()

    def slices(self, now: int, start: int, end: int) -> tuple[float, float] | None:
        """Return active and available slices as a share of all, on average; None if none is told."""
        self.refresh(now)
        told = self.fold.told
        moments = [
            (t, self.log.table[arg])
            for t, code, arg in zip(told.mark_t, told.mark_code, told.mark_arg, strict=True)
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
        """Return index and start of the step that is running."""
        self.refresh(now)
        state, told = self.fold.state, self.fold.told
        if not told.at or state.over or state.pending != NEVER or state.known_end() != NEVER:
            return None
        return told.index[-1], told.at[-1]

    @property
    def started(self) -> int | None:
        """When the job first started."""
        starts, _ = self.log.job_edges()
        place = bisect_left(starts, self._since_t())
        return starts[place] if place < len(starts) and starts[place] < self.before else None

    def ended(self, now: int) -> int | None:
        """Return when the job ended; None if it has not, or has started again."""
        return self.log.final_end(self._since_t(), min(now, self.before - 1))

    @property
    def first_event(self) -> int | None:
        """When the first event was."""
        return self.log.t[self.fold.since] if self.fold.since < len(self.log.t) else None

    def last_event(self, now: int) -> int | None:
        """Return when the last event up to `now` was."""
        return self.log.last(min(now, self.before - 1))

    @property
    def ignored(self) -> Mapping[str, int]:
        """How many of all events that are known count for nothing, by reason."""
        self._fold_up_to(FAR)
        _, contradicted = self.fold.still_open()
        return Counter(self.fold.state.ignored) + Counter({"start without end": contradicted})

    def sums(self, start: int, end: int, exclude: Sequence[tuple[int, int]] = ()) -> Account:
        """Return the account of a stretch within the life, as of the last `refresh`."""
        progress, told = self.progress, self.fold.told
        spent, overlay = self._spent(start, end)
        excluded = 0
        for left, right in _merged(exclude, start, end) if exclude else ():
            gone, beside = self._spent(left, right)
            spent = {bucket: time - gone.get(bucket, 0) for bucket, time in spent.items()}
            overlay -= beside
            excluded += right - left
        restarts = bisect_right(told.begin, end, 1) - bisect_right(told.begin, start, 1) if told.begin else 0
        begun = bisect_left(told.at, end) - 1
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
            last_step=told.index[begun] if begun >= 0 and told.at[begun] >= progress.begin else None,
        )

    def refresh(self, now: int) -> None:
        """Bring everything to `now`, on or back."""
        now = min(now, self.before - 1)
        end = self._fold_up_to(now)
        state, told = self.fold.state, self.fold.told
        opened, _ = self.fold.still_open()
        self._loading = self.fold.open_load()
        if self._loading is not None and state.moments and self._loading >= state.moments[0]:
            opened.append((self._loading, _LOAD))
            self._loading = None
        running = min(opened)[0] if opened else FAR
        since = min(told.dirty, running)
        if since < FAR:
            spans = [*told.spans_after(since), *((start, now, kind) for start, kind in opened if start < now)]
            self.painting.repaint(since, spans)
        told.dirty = running
        first = self.first_event
        begin = state.started if state.started != NEVER else now if first is None else min(first, now)
        valid = self.progress.refresh(begin, now if end is None else max(begin, end), since)
        changed = bisect_left(told.at, since) if since < FAR else FAR
        self.pace.forget(valid, min(changed, told.steady) - 1)
        told.steady = FAR

    def _fold_up_to(self, now: int) -> int | None:
        now = min(now, self.before - 1)
        end = self.ended(now)
        self.fold.run(bisect_right(self.log.t, now), end)
        return end

    def _since_t(self) -> int:
        return self.log.t[self.fold.since] if self.fold.since else NEVER

    def _stretch(self, start: int | None, end: int | None) -> tuple[int, int]:
        begin, until = self.progress.begin, self.progress.until
        first = min(max(begin, begin if start is None else start), until)
        return first, max(first, min(until, until if end is None else end))

    def _spent(self, start: int, end: int) -> tuple[dict[Bucket | None, int], int]:
        """Return what a stretch was spent on, None being productive, and how long loads went on beside it."""
        before, after = self.progress.sums(start), self.progress.sums(end)
        spent = dict(zip(SPENT, map(sub, after, before), strict=True))
        for kind, stretches in self.painting.of_kind.items():
            time = stretches.before(end) - stretches.before(start)
            if time:
                bucket = self.painting.spent(kind)
                spent[bucket] = spent.get(bucket, 0) + time
        loads, blocking = self.fold.told.loads, self.fold.told.blocking
        overlay = loads.before(end) - loads.before(start) - blocking.before(end) + blocking.before(start)
        if self._loading is not None:
            overlay += max(0, end - max(start, self._loading))
        return spent, overlay


def _merged(stretches: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int]]:
    """Return what of a stretch others cover, in order and without overlap."""
    found: list[tuple[int, int]] = []
    for left, right in sorted(stretches):
        begin, until = max(left, found[-1][1] if found else start, start), min(right, end)
        if begin < until:
            found.append((begin, until))
    return found
