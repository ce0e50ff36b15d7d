"""The fold over the events of a run, forwards and backwards in time; pure."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger.event_handlers import EventHandlers
from mldiagnostics.goodput.ledger.rules import CONTRADICTS
from mldiagnostics.goodput.ledger.state import NEVER, NONE_FITS, FoldState

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.columns import EventColumns
    from mldiagnostics.goodput.ledger.folded_columns import Lengths

_CHUNK = 8192
_MIN_DISTANCE = 16
"""Fewest events between two saved states."""

_MAX_SAVED = 64
"""Number of saved states from which on they are thinned out."""


class Fold(EventHandlers):
    """The fold of one run, from row `since` of the log on.

    `saved_states` are earlier states, denser towards the end: going back by k events costs O(k), also right after many
    events were folded at once.
    """

    def __init__(self, log: EventColumns, since: int) -> None:
        super().__init__(log, since)
        self.saved_states: list[tuple[FoldState, Lengths]] = []

    def advance(self, stop: int, end: int | None) -> None:
        """Fold up to row `stop` of the log, forwards or backwards.

        Args:
            stop: row after the last event to fold.
            end: end of the job as of the query time.
        """
        if end != self.end:
            changed = min(t for t in (end, self.end) if t is not None)
            self.rewind(bisect_left(self.log.t, changed))
            self.end = end
        if stop < self.state.place:
            self.rewind(stop)
        while self.state.place < stop:
            left = stop - self.state.place
            self._fold(self.state.place, self.state.place + min(left, _CHUNK, max(_MIN_DISTANCE, left // 2)))
            last_saved = self.saved_states[-1][0].place if self.saved_states else self.since
            if self.state.place - last_saved >= _MIN_DISTANCE:
                self.saved_states.append((self.state.copy(), self.folded.lengths()))
                if len(self.saved_states) > _MAX_SAVED:
                    self._thin_out()

    def rewind(self, row: int) -> None:
        """Go back to a saved state at or before `row`."""
        if row >= self.state.place:
            return
        saved_states = self.saved_states
        while saved_states and saved_states[-1][0].place > row:
            saved_states.pop()
        state, lengths = saved_states[-1] if saved_states else (FoldState(self.since), (0, 0, 0, 0, 0, 0))
        self.state = state.copy()
        self.folded.cut(lengths)
        self.recent.reset()

    def still_open(self) -> tuple[list[tuple[int, int]], int]:
        """Return (start, kind) of the open spans, and how many are contradicted (R9)."""
        state = self.state
        if not state.open and state.load < 0:
            return [], 0
        valid = [(start, self.kind(*key)) for key, start in state.open.items() if not self._contradicted(key[0], start)]
        return valid, len(state.open) - len(valid) + (state.load >= 0 and self.open_load() is None)

    def open_load(self) -> int | None:
        """Return the start of the load that is running."""
        load = self.state.load
        return None if load < 0 or self._contradicted(EventCode.LOAD_START, load) else load

    def _contradicted(self, code: int, start: int) -> bool:
        """Return whether a later event contradicts an open span (R9)."""
        state = self.state
        edges = state.edges
        if start < max(state.last_t, edges.get(EventCode.JOB_START, NEVER)) or start <= edges.get(
            EventCode.JOB_END, NEVER
        ):
            return True
        later = CONTRADICTS.get(code, ())  # type: ignore[call-overload]
        return any((self._last_edge(other), other) > (start, code) for other in later)

    def _last_edge(self, code: int) -> int:
        return self.last_load() if code == EventCode.LOAD_START else self.state.edges.get(code, NEVER)

    def _fold(self, start: int, stop: int) -> None:
        """Fold a few thousand events: the frequent codes inline, the others by `handle`."""
        log, state, folded = self.log, self.state, self.folded
        add_index, add_at = folded.index.append, folded.at.append
        add_load_start, add_load_end = folded.loads.start.append, folded.loads.end.append
        last, last_t, load, step_end = state.last, state.last_t, state.load, state.step_end
        for t, code, arg in zip(log.t[start:stop], log.code[start:stop], log.arg[start:stop], strict=True):
            if code == 2 and arg > last:  # EventCode.STEP_START; a literal, because this loop is hot
                add_index(arg)
                add_at(t)
                last, last_t = arg, t
            elif code == 8 and load == NEVER:  # EventCode.LOAD_START
                load = t
            elif code == 9 and load >= 0 and not state.moments:  # EventCode.LOAD_END
                add_load_start(load)
                add_load_end(t)
                load = NEVER
            elif code == 3 and arg == last:  # EventCode.STEP_END
                if step_end <= last_t < t:
                    step_end = t
            else:
                state.last, state.last_t, state.load, state.step_end = last, last_t, load, step_end
                if last != NONE_FITS:
                    state.step = last
                self.handle(t, code, arg)
                last, last_t, load, step_end = state.last, state.last_t, state.load, state.step_end
        state.last, state.last_t, state.load, state.step_end = last, last_t, load, step_end
        if last != NONE_FITS:
            state.step = last
        state.place = stop

    def _thin_out(self) -> None:
        """Drop saved states so that distances from the end about double."""
        saved_states, now = self.saved_states, self.state.place
        for number in range(len(saved_states) - 2, 0, -1):
            if now - saved_states[number - 1][0].place <= 2 * (now - saved_states[number + 1][0].place):
                del saved_states[number]
