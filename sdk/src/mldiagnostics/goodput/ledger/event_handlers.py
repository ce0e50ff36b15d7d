"""Handlers that turn events into attempts (R2), steps (R4) and spans (R5); pure."""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING, ClassVar

from mldiagnostics.goodput.events.event import CheckpointEvent, EventCode
from mldiagnostics.goodput.ledger.folded_columns import FoldedColumns
from mldiagnostics.goodput.ledger.recent_steps import RecentSteps
from mldiagnostics.goodput.ledger.rules import BUCKETS, CHECKPOINTS, CUSTOM, DUPLICATE_US, RESTARTS, SINGLE, WAITS
from mldiagnostics.goodput.ledger.state import NEVER, NONE_FITS, FoldState

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.goodput.ledger.columns import EventColumns
    from mldiagnostics.goodput.ledger.state import Key

_BUCKET_NUMBER = {int(code): bucket.value for code, bucket in BUCKETS.items()}
_LOAD = _BUCKET_NUMBER[EventCode.LOAD_START]
_LOAD_KEY = (int(EventCode.LOAD_START), 0)


class EventHandlers:
    """Handlers for the events of one run, from row `since` of the log on."""

    def __init__(self, log: EventColumns, since: int) -> None:
        self.log = log
        self.since = since
        self.end: int | None = None
        """End of the job: later steps are ignored (docs/decisions/0009)."""
        self.folded = FoldedColumns()
        self.recent = RecentSteps(self.folded)
        self.state = FoldState(since)

    def handle(self, t: int, code: int, arg: int) -> None:
        """Apply an event; events come in order of time."""
        state = self.state
        if code in SINGLE:
            if t - state.edges.get(code, -DUPLICATE_US - 1) <= DUPLICATE_US:
                return
            state.edges[code] = t
        default = EventHandlers._on_close if code % 2 else EventHandlers._on_open
        self._HANDLERS.get(code, default)(self, t, code, arg)

    def _on_step_start(self, t: int, _: int, index: int) -> None:
        """Add a step; an index that is not above the last one's starts an attempt (R2)."""
        state, folded = self.state, self.folded
        if state.over:
            self._count_ignored("after the job's end")
            return
        if self._is_duplicate_step(t, index):
            return
        if not folded.at or state.pending >= 0 or index <= state.step:
            self._start_attempt(t, index)
        folded.index.append(index)
        folded.at.append(t)
        state.step, state.last_t = index, t
        state.last = index if t > state.quiet else NONE_FITS

    def _on_step_end(self, t: int, _: int, index: int) -> None:
        """Record the first end of the last step (R11)."""
        state = self.state
        if state.pending < 0 and index == state.step and state.step_end <= state.last_t < t:
            state.step_end = t

    def _is_duplicate_step(self, t: int, index: int) -> bool:
        """Return whether a second writer reports a step again within a second (R2)."""
        return self.recent.last(index, t) >= self.state.floor

    def _start_attempt(self, t: int, index: int) -> None:
        """Start an attempt whose first step, `index`, starts at `t` (R2, R4)."""
        state, folded = self.state, self.folded
        ended = NEVER
        if not folded.at:
            begin = back = state.started if state.started >= 0 else self.log.t[self.since]
        elif state.pending >= 0:
            begin, back = state.pending, state.back
        else:
            load = self.last_load()
            begin = back = state.first_init if state.first_init >= state.last_t else load if load >= state.last_t else t
            self._block_first_load(begin)
        if folded.at:
            ended = min(state.known_end(repeated=index <= state.step), begin)
            state.quiet = NEVER if state.job_started else state.last_t + DUPLICATE_US
        folded.first.append(len(folded.at))
        folded.begin.append(begin)
        folded.ended.append(ended)
        folded.back.append(back)
        state.pending, state.job_started = NEVER, False

    def _block_first_load(self, begin: int) -> None:
        """Make the first load from `begin` on a span: it blocks the attempt."""
        folded = self.folded
        row = bisect_left(folded.loads.start, begin)
        if row == len(folded.loads):
            insort(self.state.moments, begin)
        elif not folded.blocking.start or folded.blocking.start[-1] < folded.loads.start[row]:
            self._add_blocking_load(folded.loads.start[row], folded.loads.end[row])

    def _add_blocking_load(self, start: int, end: int) -> None:
        self.folded.blocking.append(start, end)
        self.folded.add_span(start, end, _LOAD)

    def _on_job_start(self, t: int, code: int, _: int) -> None:
        """Start a job; later steps are not duplicates of steps before it."""
        state = self.state
        if not self.log.has_edge(code, t):
            return
        if state.started >= 0 or self.folded.at:
            self._drop_open_spans()
        state.edges = {edge: last for edge, last in state.edges.items() if edge == EventCode.JOB_END}
        state.edges[code] = t
        if state.started < 0:
            state.started = t
            if not self.folded.at:
                state.moments.clear()
        self._set_restart(t)
        if self.folded.at:
            state.job_started = True
            state.floor = len(self.folded.at)

    def _drop_open_spans(self) -> None:
        """Drop what the attempt before has left open: no event of the next one ends it.

        Checkpoints of other ranks stay open: their processes may have restarted earlier.
        """
        state = self.state
        dropped = [key for key in state.open if not self._is_of_other_rank(*key)]
        for key in dropped:
            del state.open[key]
            self._count_ignored("start without end")
        if state.load >= 0:
            state.load = NEVER
            self._count_ignored("start without end")

    def _is_of_other_rank(self, code: int, arg: int) -> bool:
        checkpoint = self.log.table[arg] if code in CHECKPOINTS else None
        return isinstance(checkpoint, tuple) and checkpoint[1] != self.log.authority

    def _on_reinit_start(self, t: int, code: int, arg: int) -> None:
        """Open the span; after a step, start an attempt if no job start has done so (R2)."""
        state = self.state
        if self.folded.at and not state.job_started and not state.over:
            self._set_restart(t)
        self._on_open(t, code, arg)

    def _set_restart(self, t: int) -> None:
        """Let an attempt start at `t`, or restart because it has no step yet."""
        state = self.state
        state.moments.append(t)
        if self.folded.at:
            state.back = t if state.pending < 0 else state.back
            state.pending = t
            state.last = NONE_FITS

    def _on_job_end(self, t: int, code: int, _: int) -> None:
        state = self.state
        if not self.log.has_edge(code, t):
            return
        state.edges[code] = t
        if state.pending < 0:
            state.job_end = t
        if t == self.end:
            state.over = True
            state.last = NONE_FITS

    def _on_load_start(self, t: int, *_: int) -> None:
        state = self.state
        state.load_seen = t
        if state.load < NEVER and state.unopened.get(_LOAD_KEY) == t:
            self._count_ignored("negative or zero")
            state.load = NEVER
        elif state.load < 0:
            state.load = t
        elif t - state.load > DUPLICATE_US:
            self._count_ignored("start without end")
            state.load = t

    def _on_load_end(self, t: int, *_: int) -> None:
        state = self.state
        if state.load < 0:
            self._unmatched(t, _LOAD_KEY, self.folded.loads.end[-1] if self.folded.loads else -DUPLICATE_US - 1)
            state.load = NEVER - 1
            return
        start, state.load = state.load, NEVER
        self.folded.loads.append(start, t)
        if state.moments and start >= state.moments[0]:
            self._add_blocking_load(start, t)
            state.moments = [moment for moment in state.moments if moment > start]

    def _on_open(self, t: int, code: int, arg: int) -> None:
        """Open a span; within a second the same opening is a duplicate (R2)."""
        state, key = self.state, (code, arg)
        if code in RESTARTS and state.first_init < state.last_t:
            state.first_init = t
        if code in WAITS:
            self.folded.add_mark(t, code, 0)
        if state.unopened.pop(key, NEVER) == t:
            self._count_ignored("negative or zero")
            return
        opened = state.open.get(key)
        if opened is not None and t - opened <= DUPLICATE_US:
            return
        if opened is not None:
            self._count_ignored("start without end")
        state.open[key] = t

    def _on_close(self, t: int, code: int, arg: int) -> None:
        """Close an open span and add it."""
        state, key = self.state, (code - 1, arg)
        start = state.open.pop(key, None)
        if start is None:
            self._unmatched(t, key, state.closed.get(key, -DUPLICATE_US - 1))
            return
        state.closed = {other: closed for other, closed in state.closed.items() if t - closed <= DUPLICATE_US}
        state.closed[key] = t
        self.folded.add_span(start, t, self.kind(*key))

    def _unmatched(self, t: int, key: Key, closed: int) -> None:
        """Count an end without a start, unless it repeats the end of a span."""
        if t - closed > DUPLICATE_US:
            self.state.unopened = {key: t, **{k: v for k, v in self.state.unopened.items() if v == t}}
            self._count_ignored("end without start")

    def _on_checkpoint(self, t: int, code: int, arg: int) -> None:
        saved = self.log.table[arg]
        if isinstance(saved, CheckpointEvent) and saved.until > t:
            self.folded.add_span(t, saved.until, self.kind(code, arg))
        else:
            self._count_ignored("negative or zero")
        if code in RESTARTS and self.state.first_init < self.state.last_t:
            self.state.first_init = t

    def _on_mark(self, t: int, code: int, arg: int) -> None:
        self.folded.add_mark(t, code, arg)

    def _on_alive(self, *_: int) -> None:
        """Ignore a liveness event: it only extends the log."""

    def kind(self, code: int, arg: int) -> int:
        """Return the span kind that an event opens."""
        return CUSTOM + arg if code == EventCode.CUSTOM_START else _BUCKET_NUMBER[code]

    def _count_ignored(self, reason: str) -> None:
        self.state.ignored[reason] = self.state.ignored.get(reason, 0) + 1

    def last_load(self) -> int:
        """Return the last start of a load."""
        loads = self.folded.loads.start
        return max(self.state.load_seen, self.state.load, loads[-1] if loads else NEVER)

    _HANDLERS: ClassVar[dict[int, Callable[[EventHandlers, int, int, int], None]]] = {
        EventCode.JOB_START: _on_job_start,
        EventCode.JOB_END: _on_job_end,
        EventCode.STEP_START: _on_step_start,
        EventCode.STEP_END: _on_step_end,
        EventCode.LOAD_START: _on_load_start,
        EventCode.LOAD_END: _on_load_end,
        EventCode.REINIT_START: _on_reinit_start,
        EventCode.SAVED: _on_checkpoint,
        EventCode.RESTORED: _on_checkpoint,
        EventCode.SLICES: _on_mark,
        EventCode.CAUSE: _on_mark,
        EventCode.ALIVE: _on_alive,
    }
