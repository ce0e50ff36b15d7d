"""What each event means for steps, attempts and spans, given all that came before it (S2, S4, S7); pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, ClassVar

from mldiagnostics.goodput.events import CheckpointEvent, EventCode
from mldiagnostics.goodput.ledger.folded_columns import FoldedColumns
from mldiagnostics.goodput.ledger.rules import BUCKETS, CUSTOM, RESTARTS, SECOND, SINGLE, WAITS
from mldiagnostics.goodput.ledger.state import NEVER, NONE_FITS, FoldState

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.goodput.ledger.columns import EventColumns
    from mldiagnostics.goodput.ledger.state import Key

_BUCKET = {int(code): bucket.value for code, bucket in BUCKETS.items()}
_LOAD = _BUCKET[EventCode.LOAD_START]
_LOAD_KEY = (int(EventCode.LOAD_START), 0)


class EventHandlers:
    """The events of one run from place `since` of the log on, each taken in on its own. Times are microseconds."""

    def __init__(self, log: EventColumns, since: int) -> None:
        self.log = log
        self.since = since
        self.end: int | None = None
        """The job's end: later steps do not count."""
        self.told = FoldedColumns()
        self.state = FoldState(since)

    def happens(self, t: int, code: int, arg: int) -> None:
        """Take an event in that is not earlier than those before."""
        state = self.state
        if code in SINGLE:
            if t - state.edges.get(code, -SECOND - 1) <= SECOND:
                return
            state.edges[code] = t
        (self._HANDLERS.get(code) or (EventHandlers._closes if code % 2 else EventHandlers._opens))(self, t, code, arg)

    def _step(self, t: int, _: int, index: int) -> None:
        state, told = self.state, self.told
        if state.over:
            self._ignore("after the job's end")
            return
        if self._told_before(t, index):
            return
        if not told.at or state.pending >= 0 or index <= state.step:
            self._attempt(t, index)
        told.index.append(index)
        told.at.append(t)
        state.step, state.last_t = index, t
        state.last = index if t > state.quiet else NONE_FITS

    def _step_ends(self, t: int, _: int, index: int) -> None:
        state = self.state
        if state.pending < 0 and index == state.step and state.step_end <= state.last_t < t:
            state.step_end = t

    def _told_before(self, t: int, index: int) -> bool:
        told = self.told
        place = len(told.at) - 1
        while place >= self.state.floor and t - told.at[place] <= SECOND:
            if told.index[place] == index:
                return True
            place -= 1
        return False

    def _attempt(self, t: int, index: int) -> None:
        """Begin an attempt whose first step, `index`, starts at `t` (S2, S4)."""
        state, told = self.state, self.told
        ended = NEVER
        if not told.at:
            begin = back = state.started if state.started >= 0 else self.log.t[self.since]
        elif state.pending >= 0:
            begin, back = state.pending, state.back
        else:
            load = self.last_load()
            begin = back = state.first_init if state.first_init >= state.last_t else load if load >= state.last_t else t
            self._await_load(begin)
        if told.at:
            ended = min(state.known_end(repeated=index <= state.step), begin)
            state.quiet = NEVER if state.job_started else state.last_t + SECOND
        told.first.append(len(told.at))
        told.begin.append(begin)
        told.ended.append(ended)
        told.back.append(back)
        state.pending, state.job_started = NEVER, False

    def _await_load(self, begin: int) -> None:
        """See to it that the first load from `begin` on is a span."""
        told = self.told
        place = bisect_left(told.loads.start, begin)
        if place == len(told.loads):
            insort(self.state.moments, begin)
        elif not told.blocking.start or told.blocking.start[-1] < told.loads.start[place]:
            self._block(told.loads.start[place], told.loads.end[place])

    def _block(self, start: int, end: int) -> None:
        self.told.blocking.append(start, end)
        self.told.add_span(start, end, _LOAD)

    def _job_starts(self, t: int, code: int, _: int) -> None:
        """Take in that a job starts; what comes now was told by no second writer of before."""
        state = self.state
        if not self.log.has_edge(code, t):
            return
        state.edges = {edge: told for edge, told in state.edges.items() if edge == EventCode.JOB_END}
        state.edges[code] = t
        if state.started < 0:
            state.started = t
            if not self.told.at:
                state.moments.clear()
        self._restarts(t)
        if self.told.at:
            state.job_started = True
            state.floor = len(self.told.at)

    def _reinit_starts(self, t: int, code: int, arg: int) -> None:
        """After a step, a re-initialisation opens an attempt, unless a job start has opened it (S2)."""
        state = self.state
        if self.told.at and not state.job_started and not state.over:
            self._restarts(t)
        self._opens(t, code, arg)

    def _restarts(self, t: int) -> None:
        """Take in that an attempt begins at `t`, or begins again because it has come to no step."""
        state = self.state
        state.moments.append(t)
        if self.told.at:
            state.back = t if state.pending < 0 else state.back
            state.pending = t
            state.last = NONE_FITS

    def _job_ends(self, t: int, code: int, _: int) -> None:
        state = self.state
        if not self.log.has_edge(code, t):
            return
        state.edges[code] = t
        if state.pending < 0:
            state.job_end = t
        if t == self.end:
            state.over = True
            state.last = NONE_FITS

    def _load_starts(self, t: int, *_: int) -> None:
        state = self.state
        state.load_seen = t
        if state.load < NEVER and state.unopened.get(_LOAD_KEY) == t:
            self._ignore("negative or zero")
            state.load = NEVER
        elif state.load < 0:
            state.load = t
        elif t - state.load > SECOND:
            self._ignore("start without end")
            state.load = t

    def _load_ends(self, t: int, *_: int) -> None:
        state = self.state
        if state.load < 0:
            self._unmatched(t, _LOAD_KEY, self.told.loads.end[-1] if self.told.loads else -SECOND - 1)
            state.load = NEVER - 1
            return
        start, state.load = state.load, NEVER
        self.told.loads.append(start, t)
        if state.moments and start >= state.moments[0]:
            self._block(start, t)
            state.moments = [moment for moment in state.moments if moment > start]

    def _opens(self, t: int, code: int, arg: int) -> None:
        state, key = self.state, (code, arg)
        if code in RESTARTS and state.first_init < state.last_t:
            state.first_init = t
        if code in WAITS:
            self.told.add_mark(t, code, 0)
        if state.unopened.pop(key, NEVER) == t:
            self._ignore("negative or zero")
            return
        opened = state.open.get(key)
        if opened is not None and t - opened <= SECOND:
            return
        if opened is not None:
            self._ignore("start without end")
        state.open[key] = t

    def _closes(self, t: int, code: int, arg: int) -> None:
        state, key = self.state, (code - 1, arg)
        start = state.open.pop(key, None)
        if start is None:
            self._unmatched(t, key, state.closed.get(key, -SECOND - 1))
            return
        state.closed = {other: closed for other, closed in state.closed.items() if t - closed <= SECOND}
        state.closed[key] = t
        self.told.add_span(start, t, self.kind(*key))

    def _unmatched(self, t: int, key: Key, closed: int) -> None:
        """Something ended that had not begun: by a second writer, or it begins at the same moment."""
        if t - closed > SECOND:
            self.state.unopened = {key: t, **{k: v for k, v in self.state.unopened.items() if v == t}}
            self._ignore("end without start")

    def _checkpoint(self, t: int, code: int, arg: int) -> None:
        saved = self.log.table[arg]
        if isinstance(saved, CheckpointEvent) and saved.until > t:
            self.told.add_span(t, saved.until, self.kind(code, arg))
        else:
            self._ignore("negative or zero")
        if code in RESTARTS and self.state.first_init < self.state.last_t:
            self.state.first_init = t

    def _mark(self, t: int, code: int, arg: int) -> None:
        self.told.add_mark(t, code, arg)

    def _pass(self, *_: int) -> None:
        """Take a sign of life, from which nothing follows."""

    def kind(self, code: int, arg: int) -> int:
        """Return the kind of span that an event opens."""
        return CUSTOM + arg if code == EventCode.CUSTOM_START else _BUCKET[code]

    def _ignore(self, reason: str) -> None:
        self.state.ignored[reason] = self.state.ignored.get(reason, 0) + 1

    def last_load(self) -> int:
        """Return when a load was last told to start."""
        loads = self.told.loads.start
        return max(self.state.load_seen, self.state.load, loads[-1] if loads else NEVER)

    _HANDLERS: ClassVar[dict[int, Callable[[EventHandlers, int, int, int], None]]] = {
        EventCode.JOB_START: _job_starts,
        EventCode.JOB_END: _job_ends,
        EventCode.STEP_START: _step,
        EventCode.STEP_END: _step_ends,
        EventCode.LOAD_START: _load_starts,
        EventCode.LOAD_END: _load_ends,
        EventCode.REINIT_START: _reinit_starts,
        EventCode.SAVED: _checkpoint,
        EventCode.RESTORED: _checkpoint,
        EventCode.SLICES: _mark,
        EventCode.CAUSE: _mark,
        EventCode.ALIVE: _pass,
    }
