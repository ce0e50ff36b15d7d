"""The events of a log in order of time, as columns; pure.

At one moment events stand in an order of their own (`rules.turn`), so that it does not matter in which order they came.
An argument that is no number is a place in `table`. One rank is believed, the lowest that tells of more than
checkpoints and signs of life; of others only what they tell of checkpoints is kept.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import compress, count, repeat
from operator import eq, le
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.events import EventCode
from mldiagnostics.goodput.ledger.rules import CHECKPOINTS, SECOND, TURNS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.events import Arg, Event

Whose: TypeAlias = "tuple[int, int]"
"""A checkpoint's step and the rank that tells of it."""

_FOREIGN = "told by another rank"
_OWN = frozenset({EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END})
_OF_RANKS = _OWN | {EventCode.ALIVE}
_NUMBERS = frozenset(code for code in EventCode if code < EventCode.SAVE_START) | {
    code for code in EventCode if EventCode.RESTORE_END < code < EventCode.CUSTOM_START
}


_TRANSLATED = TURNS.ljust(256, b"\0")


class EventColumns:
    """`t` in microseconds, `code`, `arg`: sorted, each event once."""

    def __init__(self) -> None:
        self.t = array("q")
        self.code = bytearray()
        self.arg = array("i")
        self.table: list[Arg | Whose] = []
        self.ignored: Counter[str] = Counter()
        self.authority: int | None = None
        self._places: dict[Arg | Whose, int] = {}
        self._edges: tuple[array[int], array[int]] | None = None

    def add(self, event: Event) -> int | None:
        """Take an event in; return the place from which the columns have changed, None if they have not."""
        t, code, arg, rank, _ = event
        changed = self._believe(code, rank)
        if changed is None:
            return None
        number = self._number(code, arg, rank)
        place = len(self.t)
        if place and t <= self.t[-1]:
            found = self._place(t, code, number)
            if found is None:
                return changed if changed < place else None
            place = found
            self.t.insert(place, t)
            self.code.insert(place, code)
            self.arg.insert(place, number)
        else:
            self.t.append(t)
            self.code.append(code)
            self.arg.append(number)
        if code <= EventCode.JOB_END:
            self._edges = None
        return min(changed, place)

    def extend(
        self, times: array[int], codes: bytes | bytearray | array[int], args: array[int], *, rank: int = 0
    ) -> int | None:
        """Take many events of one rank in, in any order; return as `add` does.

        Raises `ValueError` if the columns are not equally long or an event has no number as its argument.
        """
        kinds = bytearray(codes)
        if not len(times) == len(kinds) == len(args):
            raise ValueError(f"columns of {len(times)} times, {len(kinds)} codes and {len(args)} args: make them equal")
        strange = [code for code in set(kinds) if code >= EventCode.CUSTOM_START and code != EventCode.ALIVE]
        if strange:
            raise ValueError(f"events of code {min(strange)} have no number as their argument: add them one by one")
        times, numbers = array("q", times), array("i", args)
        changed, times, kinds, numbers = self._heard(times, kinds, numbers, rank)
        if not times:
            return changed if changed < len(self.t) else None
        if EventCode.JOB_START in kinds or EventCode.JOB_END in kinds:
            self._edges = None
        place = bisect_left(self.t, min(times))
        upto = bisect_right(self.t, max(times), place)
        if upto > place or not _sorted(times):
            times, kinds, numbers = (
                self.t[place:upto] + times,
                self.code[place:upto] + kinds,
                self.arg[place:upto] + numbers,
            )
            order = self._order(times, kinds)
            if order is not None:
                times = array("q", map(times.__getitem__, order))
                kinds = bytearray(map(kinds.__getitem__, order))
                numbers = array("i", map(numbers.__getitem__, order))
        times, kinds, numbers = self._settled(times, kinds, numbers)
        self.t[place:upto], self.code[place:upto], self.arg[place:upto] = times, kinds, numbers
        return min(changed, place)

    def fill_table(self, table: list[Arg | Whose]) -> None:
        """Take over the arguments that are no numbers, of columns that were kept."""
        self.table[:] = table
        self._places = {kept: place for place, kept in enumerate(table)}

    def job_edges(self) -> tuple[array[int], array[int]]:
        """Return when the job started and when it ended, each time once."""
        if self._edges is None:
            self._edges = self._once(EventCode.JOB_START), self._once(EventCode.JOB_END)
        return self._edges

    def has_edge(self, code: int, t: int) -> bool:
        """Return whether a job's start or end at `t` is one of `job_edges`."""
        edges = self.job_edges()[code]
        place = bisect_left(edges, t)
        return place < len(edges) and edges[place] == t

    def last(self, now: int) -> int | None:
        """Return when the last event up to `now` was."""
        place = bisect_right(self.t, now)
        return self.t[place - 1] if place else None

    def final_end(self, since: int, now: int) -> int | None:
        """Return the job end within a stretch of time that no job start follows."""
        starts, ends = self.job_edges()
        if not ends:
            return None
        last = bisect_right(ends, now) - 1
        if last < 0 or ends[last] < since:
            return None
        follows = bisect_right(starts, ends[last])
        return None if follows < len(starts) and starts[follows] <= now else ends[last]

    def _believe(self, code: int, rank: int) -> int | None:
        """Return from where the columns change because of who tells this; None if it is not believed."""
        if code in CHECKPOINTS or rank == self.authority:
            return len(self.t)
        if self.authority is not None and rank > self.authority:
            self.ignored[_FOREIGN] += 1
            return None
        if code == EventCode.ALIVE:
            return len(self.t)
        self.authority = rank
        return self._follow(rank)

    def _follow(self, rank: int) -> int:
        """Drop what another rank told; what is still here of others is about checkpoints or a sign of life."""
        kept = [
            code in CHECKPOINTS or (code == EventCode.ALIVE and arg <= rank)
            for code, arg in zip(self.code, self.arg, strict=True)
        ]
        if all(kept):
            return len(self.t)
        self.ignored[_FOREIGN] += kept.count(False)
        first = kept.index(False)
        self.t = array("q", compress(self.t, kept))
        self.code = bytearray(compress(self.code, kept))
        self.arg = array("i", compress(self.arg, kept))
        self._edges = None
        return first

    def _heard(
        self, times: array[int], kinds: bytearray, numbers: array[int], rank: int
    ) -> tuple[int, array[int], bytearray, array[int]]:
        """Return from where the columns change because of `rank`, and what of its events is believed."""
        told = set(kinds)
        changed = len(self.t)
        if rank != self.authority:
            for code in sorted(told - CHECKPOINTS - {EventCode.ALIVE}) + [EventCode.ALIVE] * (EventCode.ALIVE in told):
                before = self.ignored[_FOREIGN]
                found = self._believe(code, rank)
                if found is None:
                    self.ignored[_FOREIGN] = before + kinds.count(code)
                    kept = [kind != code for kind in kinds]
                    times, numbers = array("q", compress(times, kept)), array("i", compress(numbers, kept))
                    kinds = bytearray(compress(kinds, kept))
                else:
                    changed = min(changed, found)
        if not told.isdisjoint(_OF_RANKS):
            for place, code in enumerate(kinds):
                if code in _OF_RANKS:
                    numbers[place] = self._number(code, numbers[place], rank)
        return changed, times, kinds, numbers

    def _number(self, code: int, arg: Arg, rank: int) -> int:
        if code in _NUMBERS:
            return arg if type(arg) is int else int(arg)  # type: ignore[arg-type]
        if code == EventCode.ALIVE:
            return rank
        kept: Arg | Whose = (arg, rank) if code in _OWN and isinstance(arg, int) else arg
        place = self._places.get(kept)
        if place is None:
            place = self._places[kept] = len(self.table)
            self.table.append(kept)
        return place

    def _key(self, code: int, number: int) -> tuple[int, int, int | str]:
        numeric = code in _NUMBERS or code == EventCode.ALIVE
        return TURNS[code], code, number if numeric else str(self.table[number])

    def _place(self, t: int, code: int, number: int) -> int | None:
        """Return where an event belongs; None if it is there already."""
        place, end = bisect_left(self.t, t), bisect_right(self.t, t)
        key = self._key(code, number)
        while place < end and (found := self._key(self.code[place], self.arg[place])) <= key:
            if found == key:
                return None
            place += 1
        return place

    def _order(self, times: array[int], kinds: bytearray) -> list[int] | None:
        if _sorted(times):
            return None
        keys = [t << 3 | TURNS[kind] for t, kind in zip(times, kinds, strict=True)]
        return sorted(range(len(keys)), key=keys.__getitem__)

    def _settled(
        self, times: array[int], kinds: bytearray, numbers: array[int]
    ) -> tuple[array[int], bytearray, array[int]]:
        """Put events of one moment into their order, each once."""
        turns = kinds.translate(_TRANSLATED)
        unclear = [place for place in compress(count(), map(eq, times, times[1:])) if turns[place] >= turns[place + 1]]
        doubles: list[int] = []
        done = 0
        for place in unclear:
            if place < done:
                continue
            first, done = bisect_left(times, times[place]), bisect_right(times, times[place])
            both = zip(kinds[first:done], numbers[first:done], strict=True)
            group = sorted((self._key(*each), *each) for each in both)
            for at, (key, code, number) in enumerate(group):
                kinds[first + at], numbers[first + at] = code, number
                if at and key == group[at - 1][0]:
                    doubles.append(first + at)
        if doubles:
            kept = bytearray(repeat(1, len(times)))
            for place in doubles:
                kept[place] = 0
            times, kinds = array("q", compress(times, kept)), bytearray(compress(kinds, kept))
            numbers = array("i", compress(numbers, kept))
        return times, kinds, numbers

    def _once(self, code: int) -> array[int]:
        """Return when something was told, without what was told again within a second."""
        found = array("q")
        place = self.code.find(code)
        while place >= 0:
            if not found or self.t[place] - found[-1] > SECOND:
                found.append(self.t[place])
            place = self.code.find(code, place + 1)
        return found


def _sorted(times: Iterable[int]) -> bool:
    column = times if isinstance(times, array) else array("q", times)
    return all(map(le, column, column[1:]))
