"""Events one after the other, up to a moment and back; pure."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events import EventCode
from mldiagnostics.goodput.ledger.event_handlers import EventHandlers
from mldiagnostics.goodput.ledger.rules import CONTRADICTS
from mldiagnostics.goodput.ledger.state import NEVER, NONE_FITS, FoldState

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.columns import EventColumns
    from mldiagnostics.goodput.ledger.folded_columns import Lengths

_CHUNK = 8192
_APART = 16
_KEPT = 64


class Fold(EventHandlers):
    """The events of one run from place `since` of the log on.

    `kept` are states of before, the closer the later they are: going back by k events costs O(k), also right after
    very many were folded at once.
    """

    def __init__(self, log: EventColumns, since: int) -> None:
        super().__init__(log, since)
        self.kept: list[tuple[FoldState, Lengths]] = []

    def run(self, stop: int, end: int | None) -> None:
        """Fold up to place `stop` of the log, on or back."""
        if end != self.end:
            changed = min(t for t in (end, self.end) if t is not None)
            self.back_to(bisect_left(self.log.t, changed))
            self.end = end
        if stop < self.state.place:
            self.back_to(stop)
        while self.state.place < stop:
            left = stop - self.state.place
            self._fold(self.state.place, self.state.place + min(left, _CHUNK, max(_APART, left // 2)))
            if self.state.place - (self.kept[-1][0].place if self.kept else self.since) >= _APART:
                self.kept.append((self.state.copy(), self.told.lengths()))
                if len(self.kept) > _KEPT:
                    self._thin()

    def back_to(self, place: int) -> None:
        """Forget what was folded from a place of the log on, and perhaps some more."""
        if place >= self.state.place:
            return
        kept = self.kept
        while kept and kept[-1][0].place > place:
            kept.pop()
        state, lengths = kept[-1] if kept else (FoldState(self.since), (0, 0, 0, 0, 0, 0))
        self.state = state.copy()
        self.told.cut(lengths)

    def still_open(self) -> tuple[list[tuple[int, int]], int]:
        """Return start and kind of the spans that nothing later contradicts, and how many are contradicted (S8)."""
        state = self.state
        if not state.open and state.load < 0:
            return [], 0
        valid = [(start, self.kind(*key)) for key, start in state.open.items() if not self._contradicted(key[0], start)]
        return valid, len(state.open) - len(valid) + (state.load >= 0 and self.open_load() is None)

    def open_load(self) -> int | None:
        """Return since when a load goes on."""
        load = self.state.load
        return None if load < 0 or self._contradicted(EventCode.LOAD_START, load) else load

    def _contradicted(self, code: int, start: int) -> bool:
        state = self.state
        edges = state.edges
        if start < max(state.last_t, edges.get(EventCode.JOB_START, NEVER)) or start <= edges.get(
            EventCode.JOB_END, NEVER
        ):
            return True
        later = CONTRADICTS.get(code, ())  # type: ignore[call-overload]
        return any((self._seen(other), other) > (start, code) for other in later)

    def _seen(self, code: int) -> int:
        return self.last_load() if code == EventCode.LOAD_START else self.state.edges.get(code, NEVER)

    def _fold(self, start: int, stop: int) -> None:
        """Fold a few thousand events. What nearly all of them are is done here, the rest in `EventHandlers`."""
        log, state, told = self.log, self.state, self.told
        add_index, add_at = told.index.append, told.at.append
        add_load_start, add_load_end = told.loads.start.append, told.loads.end.append
        last, last_t, load, step_end = state.last, state.last_t, state.load, state.step_end
        for t, code, arg in zip(log.t[start:stop], log.code[start:stop], log.arg[start:stop], strict=True):
            if code == 2 and arg > last:  # Code.STEP_START; here every nanosecond counts
                add_index(arg)
                add_at(t)
                last, last_t = arg, t
            elif code == 8 and load == NEVER:  # Code.LOAD_START
                load = t
            elif code == 9 and load >= 0 and not state.moments:  # Code.LOAD_END
                add_load_start(load)
                add_load_end(t)
                load = NEVER
            elif code == 3 and arg == last:  # Code.STEP_END
                if step_end <= last_t < t:
                    step_end = t
            else:
                state.last, state.last_t, state.load, state.step_end = last, last_t, load, step_end
                if last != NONE_FITS:
                    state.step = last
                self.happens(t, code, arg)
                last, last_t, load, step_end = state.last, state.last_t, state.load, state.step_end
        state.last, state.last_t, state.load, state.step_end = last, last_t, load, step_end
        if last != NONE_FITS:
            state.step = last
        state.place = stop

    def _thin(self) -> None:
        """Drop kept states so that there is one at least half as far back as any of them."""
        kept, now = self.kept, self.state.place
        for place in range(len(kept) - 2, 0, -1):
            if now - kept[place - 1][0].place <= 2 * (now - kept[place + 1][0].place):
                del kept[place]
