"""A log without run ids, divided into runs: a job start after a recorded end begins another one (S10); pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events import Code
from mldiagnostics.goodput.ledger.life import Life
from mldiagnostics.goodput.ledger.told import FAR

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.columns import Columns


class Lives:
    """The runs of a log, oldest first; there is always one."""

    def __init__(self, log: Columns, *, splits: bool) -> None:
        self.log = log
        self.splits = splits
        self.known = [Life(log)]

    def changed(self, place: int) -> None:
        """Forget what was made of the events from a place of the log on."""
        while len(self.known) > 1 and self.known[-1].fold.since >= place:
            self.known.pop()
        for life in self.known:
            life.fold.back_to(place)

    def as_of(self, now: int) -> list[Life]:
        """Return the runs that have begun by `now`."""
        if not self.splits:
            return self.known
        starts, ends = self.log.job_edges()
        found, before = [self._life(0)], -1
        for start in starts[: bisect_right(starts, now)]:
            last = bisect_left(ends, start) - 1
            if last >= 0 and ends[last] >= before and self._begun(ends[last], before):
                place = bisect_left(self.log.t, start)
                if not self._resumes(found[-1], ends[last], place, now):
                    found[-1].before = start
                    found.append(self._life(place))
            before = start
        self.known = found
        return found

    def _life(self, place: int) -> Life:
        life = next((life for life in self.known if life.fold.since == place), None) or Life(self.log, place)
        life.before = FAR
        return life

    def _begun(self, end: int, start: int) -> bool:
        """Return whether there is anything that a job's end can end; `start` is the last job start before it."""
        if start >= 0:
            return True
        first = self.log.code.find(Code.STEP_START)
        return first >= 0 and self.log.t[first] <= end

    def _resumes(self, life: Life, end: int, place: int, now: int) -> bool:
        """Return whether the first step after a job start goes on where the run that ended at `end` had come to."""
        following = self.log.code.find(Code.STEP_START, place)
        if following < 0 or self.log.t[following] > now:
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
