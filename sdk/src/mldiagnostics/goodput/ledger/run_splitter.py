"""A log without run ids, divided into runs: a job start after a recorded end begins another one (S10); pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events import EventCode
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.run_timeline import RunTimeline

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.columns import EventColumns


class RunSplitter:
    """The runs of a log, oldest first; there is always one."""

    def __init__(self, log: EventColumns, *, splits: bool) -> None:
        self.log = log
        self.splits = splits
        self.known = [RunTimeline(log)]
        self._decided: tuple[object, int, int] | None = None
        """The job edges for which `known` is right, from which moment on, and which place of the log it rests on."""

    def changed(self, place: int) -> None:
        """Forget what was made of the events from a place of the log on."""
        while len(self.known) > 1 and self.known[-1].fold.since >= place:
            self.known.pop()
        for life in self.known:
            life.fold.back_to(place)
        if self._decided and place <= self._decided[2]:
            self._decided = None

    def as_of(self, now: int) -> list[RunTimeline]:
        """Return the runs that have begun by `now`."""
        if not self.splits:
            return self.known
        edges = starts, ends = self.log.job_edges()
        if self._decided and edges is self._decided[0] and now >= self._decided[1]:
            return self.known
        known = {life.fold.since: life for life in self.known}
        found, before, following = [self._life(known, 0)], -1, 0
        for start in starts[: bisect_right(starts, now)]:
            last = bisect_left(ends, start) - 1
            if last >= 0 and ends[last] >= before and self._begun(ends[last], before):
                place = bisect_left(self.log.t, start)
                following = self.log.code.find(EventCode.STEP_START, place)
                if not self._resumes(found[-1], ends[last], place, following if self._is_known(following, now) else -1):
                    found[-1].before = start
                    found.append(self._life(known, place))
            before = start
        self.known = found
        final = self._is_known(following, now) and (not starts or starts[-1] <= now)
        rests_on = max(following, bisect_left(self.log.t, starts[-1])) if starts else 0
        self._decided = (edges, now, rests_on) if final else None
        return found

    def _is_known(self, place: int, now: int) -> bool:
        return 0 <= place < len(self.log.t) and self.log.t[place] <= now

    def _life(self, known: dict[int, RunTimeline], place: int) -> RunTimeline:
        life = known.get(place) or RunTimeline(self.log, place)
        life.before = FAR
        return life

    def _begun(self, end: int, start: int) -> bool:
        """Return whether there is anything that a job's end can end; `start` is the last job start before it."""
        if start >= 0:
            return True
        first = self.log.code.find(EventCode.STEP_START)
        return first >= 0 and self.log.t[first] <= end

    def _resumes(self, life: RunTimeline, end: int, place: int, following: int) -> bool:
        """Return whether the first step after a job start goes on where the run that ended at `end` had come to."""
        if following < 0:
            return False
        if life.fold.state.place < place:
            life.fold.run(place, end)
        told = life.fold.told
        last = bisect_right(told.at, end) - 1
        if last < 0:
            return False
        alone = told.first[bisect_right(told.first, last) - 1] == last
        stride = 1 if alone else told.index[last] - told.index[last - 1]
        return 0 < self.log.arg[following] <= told.index[last] + stride
