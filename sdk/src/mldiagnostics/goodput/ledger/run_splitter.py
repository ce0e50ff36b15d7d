"""Runs of a log without run ids; pure.

A job start after a recorded job end begins another run, unless its first step continues the run before
(docs/decisions/0009 "A job start after a job end").
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.run_timeline import RunTimeline

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.columns import EventColumns


class RunSplitter:
    """Runs of a log, oldest first; there is always one."""

    def __init__(self, log: EventColumns, *, splits: bool) -> None:
        self.log = log
        self.splits = splits
        self.known = [RunTimeline(log)]
        self._decided: tuple[object, int, int] | None = None
        """Validity of `known`: the job edges, the first `now`, and the last row of the log that it depends on."""

    def changed(self, row: int) -> None:
        """Discard results that depend on events from `row` on."""
        while len(self.known) > 1 and self.known[-1].fold.since >= row:
            self.known.pop()
        for run in self.known:
            run.fold.rewind(row)
        if self._decided and row <= self._decided[2]:
            self._decided = None

    def as_of(self, now: int) -> list[RunTimeline]:
        """Return the runs that began by `now`."""
        if not self.splits:
            return self.known
        edges = starts, ends = self.log.job_edges()
        if self._decided and edges is self._decided[0] and now >= self._decided[1]:
            return self.known
        by_row = {run.fold.since: run for run in self.known}
        runs, previous_start, next_step = [self._run_from(by_row, 0)], -1, 0
        for start in starts[: bisect_right(starts, now)]:
            last = bisect_left(ends, start) - 1
            if last >= 0 and ends[last] >= previous_start and self._has_started(ends[last], previous_start):
                row = bisect_left(self.log.t, start)
                next_step = self.log.code.find(EventCode.STEP_START, row)
                known_step = next_step if self._is_known(next_step, now) else -1
                if not self._continues(runs[-1], ends[last], row, known_step):
                    runs[-1].before = start
                    runs.append(self._run_from(by_row, row))
            previous_start = start
        self.known = runs
        final = self._is_known(next_step, now) and (not starts or starts[-1] <= now)
        rests_on = max(next_step, bisect_left(self.log.t, starts[-1])) if starts else 0
        self._decided = (edges, now, rests_on) if final else None
        return runs

    def _is_known(self, row: int, now: int) -> bool:
        return 0 <= row < len(self.log.t) and self.log.t[row] <= now

    def _run_from(self, by_row: dict[int, RunTimeline], row: int) -> RunTimeline:
        run = by_row.get(row) or RunTimeline(self.log, row)
        run.before = FAR
        return run

    def _has_started(self, end: int, start: int) -> bool:
        """Return whether a job start (`start`, -1 without one) or a step precedes `end`."""
        if start >= 0:
            return True
        first = self.log.code.find(EventCode.STEP_START)
        return first >= 0 and self.log.t[first] <= end

    def _continues(self, run: RunTimeline, end: int, row: int, next_step: int) -> bool:
        """Return whether the step after a job start continues the run that ended at `end`.

        It does if its index is above 0 and not beyond the next step of that run.
        """
        if next_step < 0:
            return False
        if run.fold.state.place < row:
            run.fold.advance(row, end)
        folded = run.fold.folded
        last = bisect_right(folded.at, end) - 1
        if last < 0:
            return False
        single = folded.first[bisect_right(folded.first, last) - 1] == last
        stride = 1 if single else folded.index[last] - folded.index[last - 1]
        return 0 < self.log.arg[next_step] <= folded.index[last] + stride
