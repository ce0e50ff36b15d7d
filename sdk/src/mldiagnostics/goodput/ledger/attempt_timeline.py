"""The timelines of all attempts of a run, and sums over them; pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from operator import sub
from typing import TYPE_CHECKING

from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.phases import OTHER, RECOVERY, AttemptTimeline
from mldiagnostics.goodput.ledger.state import NEVER

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.fold import Fold
    from mldiagnostics.goodput.ledger.span_overlay import SpanOverlay

_UNBOUND = 2**31


class AttemptTimelines:
    """Timelines of all attempts with steps, cached until their events change."""

    def __init__(self, fold: Fold, span_overlay: SpanOverlay) -> None:
        self.fold = fold
        self.span_overlay = span_overlay
        self.timelines: list[AttemptTimeline] = []
        self.begin = 0
        self.until = 0
        self._bounds: list[int] = []
        """For each attempt, the lowest first step index of later attempts: steps from it on are wasted (R3)."""
        self._remaining: list[int] = []
        """Attempts with surviving steps; each starts at a higher step index than the one before."""
        self._totals: list[tuple[int, ...]] = []

    def refresh(self, begin: int, until: int, since: int) -> int:
        """Update the timelines; return the number of unchanged attempts at the front.

        Args:
            begin: begin of the run.
            until: end of the run, or the query time.
            since: spans have changed from this moment on.
        """
        folded = self.fold.folded
        self.begin, self.until = begin, until
        valid = min(
            folded.stable_attempts - 1,
            len(self.timelines) - 1,
            bisect_right(folded.begin, since) - 1,
            len(folded.first) - 1,
        )
        if folded.stable_attempts < len(self._bounds):
            self._bounds, self._remaining = [], []
        folded.stable_attempts = FAR
        valid = max(0, min(valid, self._update_bounds()))
        del self.timelines[valid:], self._totals[valid + 1 :]
        for attempt in range(valid, len(folded.first)):
            if attempt == len(self._totals):
                self._totals.append(self._total_before(attempt))
            self.timelines.append(self._timeline(attempt))
        return valid

    @property
    def restart(self) -> int | None:
        """Begin of an attempt that has no step yet."""
        pending = self.fold.state.pending
        return None if pending == NEVER else pending

    def sums(self, t: int) -> list[int]:
        """Return the time of each phase before `t`, without the time that spans cover."""
        attempt = bisect_right(self.fold.folded.begin, t) - 1
        if attempt < 0:
            return [0 if self.timelines else self.span_overlay.uncovered(self.begin, max(t, self.begin)), 0, 0, 0, 0]
        sums = list(self._totals[attempt])
        timeline = self.timelines[attempt]
        if t > timeline.begin:
            self._add(sums, timeline, t, attempt)
        return sums

    def last_done(self, t: int) -> int | None:
        """Return the highest step index that is done by `t` and survives (R3)."""
        folded = self.fold.folded
        attempt = bisect_right(folded.begin, t) - 1
        while attempt >= 0 and (attempt := self.timelines[attempt].last_productive) >= 0:
            timeline = self.timelines[attempt]
            started = bisect_right(folded.at, t, timeline.first, timeline.last + 1) - 1
            done = min(timeline.done, started + (started == timeline.last and timeline.last_end <= t))
            end = folded.at[done] if done <= timeline.last else timeline.last_end
            if done > timeline.first and end >= self.begin:
                return folded.index[done - 1]
            attempt -= 1
        return None

    def net_times(self, first: int, last: int) -> list[int]:
        """Return the durations of the steps at rows [first, last), without spans."""
        at = self.fold.folded.at
        times = list(map(sub, at[first + 1 : last + 1], at[first:last]))
        if first < last:
            for start, end, _ in self.span_overlay.between(at[first], at[last]):
                row = bisect_right(at, start, first, last) - 1
                while row < last and at[row] < end:
                    times[row - first] -= min(end, at[row + 1]) - max(start, at[row])
                    row += 1
        return times

    def _update_bounds(self) -> int:
        """Find the steps that later attempts repeat.

        Returns the number of unchanged attempts at the front. A step is lost when a later attempt begins at or below
        its index (R3, docs/decisions/0009 "Lost at once"): an attempt removes earlier ones that begin at its first
        step or above, and cuts the one before these.
        """
        folded, bounds, remaining = self.fold.folded, self._bounds, self._remaining
        unchanged = FAR
        for attempt in range(len(bounds), len(folded.first)):
            first = folded.index[folded.first[attempt]]
            while remaining and bounds[remaining[-1]] > first:
                unchanged = min(unchanged, remaining[-1])
                bounds[remaining[-1]] = first
                if folded.index[folded.first[remaining[-1]]] < first:
                    break
                remaining.pop()
            unchanged = min(unchanged, attempt)
            bounds.append(_UNBOUND)
            remaining.append(attempt)
        return unchanged

    def _total_before(self, attempt: int) -> tuple[int, ...]:
        if not attempt:
            return (0, 0, 0, 0, 0)
        sums = list(self._totals[attempt - 1])
        timeline = self.timelines[attempt - 1]
        self._add(sums, timeline, timeline.until, attempt - 1)
        return tuple(sums)

    def _add(self, sums: list[int], timeline: AttemptTimeline, t: int, attempt: int) -> None:
        """Add the phases between the attempt's begin and `t` to `sums`."""
        before = self.span_overlay.cover.before
        left, covered_left = timeline.begin, before(timeline.begin)
        running = attempt == len(self.fold.folded.first) - 1 and self.restart is None
        tail = OTHER if running else RECOVERY
        for kind, right in enumerate(timeline[1:6]):
            moment = min(right, t)
            if moment > left:
                covered = before(moment)
                sums[tail if kind == RECOVERY else kind] += moment - left - covered + covered_left
                left, covered_left = moment, covered
        if t > left:
            sums[OTHER] += self.span_overlay.uncovered(left, t)

    def _timeline(self, attempt: int) -> AttemptTimeline:
        folded = self.fold.folded
        first = folded.first[attempt]
        closed = attempt + 1 < len(folded.first)
        last = (folded.first[attempt + 1] if closed else len(folded.at)) - 1
        kept = bisect_left(folded.index, self._bounds[attempt], first, last + 1) if closed else last + 1
        last_end, until, finished = self._closed_end(attempt, first, last) if closed else self._open_end(last)
        done = min(kept, last + finished)
        return AttemptTimeline(
            begin=folded.begin[attempt],
            start=folded.at[first],
            startup=self._startup(first, min(kept, last)),
            lost=folded.at[kept] if kept <= last else last_end,
            last_end=last_end,
            until=until,
            first=first,
            kept=kept,
            done=done,
            last=last,
            ended=finished,
            last_productive=attempt if done > first else self.timelines[attempt - 1].last_productive if attempt else -1,
        )

    def _startup(self, first: int, last: int) -> int:
        """Return when program startup ends within the first step (R7).

        Startup is the time that the first step takes beyond the mean of the other steps before `last`, without spans.
        It lies at the start of the step, so that windows cut it there (docs/decisions/0009).
        """
        at, cover = self.fold.folded.at, self.span_overlay.cover
        others = last - first - 1
        start, second, stop = at[first], at[min(first + 1, last)], at[last]
        if others < 1:
            return start
        covered = cover.before(second)
        mean = (stop - second - cover.before(stop) + covered) // others
        extra = second - start - covered + cover.before(start) - mean
        return cover.after(start, extra, second) if extra > 0 else start

    def _closed_end(self, attempt: int, first: int, last: int) -> tuple[int, int, bool]:
        """Return end of the last step, restart, and whether the last step was done (R4).

        A known step end or job end counts. Otherwise, if the next attempt continues with the next step, the last step
        keeps the median step time of its attempt; if not, it keeps nothing. The next step is at most the distance of
        the last two steps away (docs/decisions/0009 "The next step").
        """
        folded = self.fold.folded
        restart, ended = folded.begin[attempt + 1], folded.ended[attempt + 1]
        if ended != NEVER:
            return ended, restart, True
        stride = folded.index[last] - folded.index[last - 1] if last > first else 1
        if 0 < folded.index[folded.first[attempt + 1]] - folded.index[last] <= stride:
            typical = median(sorted(self.net_times(first, last)) or [0])
            return self.span_overlay.cover.after(folded.at[last], typical, restart), restart, True
        return folded.at[last], restart, False

    def _open_end(self, last: int) -> tuple[int, int, bool]:
        """Return the same for the newest attempt; a running step is not done (R14)."""
        state = self.fold.state
        until = self.until if self.restart is None else self.restart
        ended = state.known_end()
        if ended != NEVER:
            return min(ended, until), until, True
        return self.fold.folded.at[last], until, False


def median(ordered: list[int]) -> int:
    """Return the median of sorted numbers, rounded down."""
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
