"""The events of a log as columns, sorted by time (R6); pure.

Events of one moment are sorted by `rules.precedence`, so the order of arrival does not matter. An argument that is not
a number is stored in `table`, and its index there is the number. Only one rank counts, the lowest that reports more
than checkpoints and liveness; checkpoints count from every rank (R13, docs/decisions/0009).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from itertools import compress, count, repeat
from operator import eq, le
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.ledger.rules import CHECKPOINTS, DUPLICATE_US, PRECEDENCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.goodput.events.event import Arg, Event

RankedStep: TypeAlias = "tuple[int, int]"
"""Step of a checkpoint and the rank that reports it."""

_OTHER_RANK = "reported by another rank"
_PER_RANK = frozenset({EventCode.SAVE_START, EventCode.SAVE_END, EventCode.RESTORE_START, EventCode.RESTORE_END})
_WITH_RANK = _PER_RANK | {EventCode.ALIVE}
_NUMERIC = frozenset(code for code in EventCode if code < EventCode.SAVE_START) | {
    code for code in EventCode if EventCode.RESTORE_END < code < EventCode.CUSTOM_START
}
_PRECEDENCE_TABLE = PRECEDENCE.ljust(256, b"\0")


class EventColumns:
    """Columns `t` (microseconds), `code` and `arg`: sorted, each event once."""

    def __init__(self) -> None:
        self.t = array("q")
        self.code = bytearray()
        self.arg = array("i")
        self.table: list[Arg | RankedStep] = []
        self.ignored: Counter[str] = Counter()
        self.authority: int | None = None
        """The rank that counts."""
        self._numbers: dict[Arg | RankedStep, int] = {}
        self._edges: tuple[array[int], array[int]] | None = None

    def add(self, event: Event) -> int | None:
        """Add an event; return the first row that changed, None without a change."""
        t, code, arg, rank, _ = event
        changed = self._admit(code, rank)
        if changed is None:
            return None
        number = self._encode(code, arg, rank)
        row = len(self.t)
        if row and t <= self.t[-1]:
            inserted = self._insert_row(t, code, number)
            if inserted is None:
                return changed if changed < row else None
            row = inserted
            self.t.insert(row, t)
            self.code.insert(row, code)
            self.arg.insert(row, number)
        else:
            self.t.append(t)
            self.code.append(code)
            self.arg.append(number)
        if code <= EventCode.JOB_END:
            self._edges = None
        return min(changed, row)

    def extend(
        self, times: array[int], codes: bytes | bytearray | array[int], args: array[int], *, rank: int = 0
    ) -> int | None:
        """Add many events of one rank, in any order; return the same as `add`.

        Raises:
            ValueError: the columns differ in length, or a code has an argument that is not a number.
        """
        kinds = bytearray(codes)
        if not len(times) == len(kinds) == len(args):
            raise ValueError(
                f"columns: {len(times)} times, {len(kinds)} codes and {len(args)} args; pass columns of the same length"
            )
        unsupported = [code for code in set(kinds) if code >= EventCode.CUSTOM_START and code != EventCode.ALIVE]
        if unsupported:
            raise ValueError(
                f"codes: the argument of code {min(unsupported)} is not a number; use add() for such events"
            )
        times, numbers = array("q", times), array("i", args)
        changed, times, kinds, numbers = self._admitted(times, kinds, numbers, rank)
        if not times:
            return changed if changed < len(self.t) else None
        if EventCode.JOB_START in kinds or EventCode.JOB_END in kinds:
            self._edges = None
        row = bisect_left(self.t, min(times))
        upto = bisect_right(self.t, max(times), row)
        if upto > row or not _sorted(times):
            times, kinds, numbers = (
                self.t[row:upto] + times,
                self.code[row:upto] + kinds,
                self.arg[row:upto] + numbers,
            )
            order = self._sort_order(times, kinds)
            if order is not None:
                times = array("q", map(times.__getitem__, order))
                kinds = bytearray(map(kinds.__getitem__, order))
                numbers = array("i", map(numbers.__getitem__, order))
        times, kinds, numbers = self._deduplicated(times, kinds, numbers)
        self.t[row:upto], self.code[row:upto], self.arg[row:upto] = times, kinds, numbers
        return min(changed, row)

    def fill_table(self, table: list[Arg | RankedStep]) -> None:
        """Set the table of arguments that are not numbers, as `snapshot` has stored it."""
        self.table[:] = table
        self._numbers = {kept: number for number, kept in enumerate(table)}

    def job_edges(self) -> tuple[array[int], array[int]]:
        """Return the times of job starts and job ends, each once."""
        if self._edges is None:
            self._edges = self._edge_times(EventCode.JOB_START), self._edge_times(EventCode.JOB_END)
        return self._edges

    def has_edge(self, code: int, t: int) -> bool:
        """Return whether `job_edges` has a job start or end at `t`."""
        edges = self.job_edges()[code]
        row = bisect_left(edges, t)
        return row < len(edges) and edges[row] == t

    def last(self, now: int) -> int | None:
        """Return the time of the last event up to `now`."""
        row = bisect_right(self.t, now)
        return self.t[row - 1] if row else None

    def final_end(self, since: int, now: int) -> int | None:
        """Return the last job end in [since, now] if no job start follows it."""
        starts, ends = self.job_edges()
        if not ends:
            return None
        last = bisect_right(ends, now) - 1
        if last < 0 or ends[last] < since:
            return None
        next_start = bisect_right(starts, ends[last])
        return None if next_start < len(starts) and starts[next_start] <= now else ends[last]

    def _admit(self, code: int, rank: int) -> int | None:
        """Return the first row that changes due to the rank; None if it does not count."""
        if code in CHECKPOINTS or rank == self.authority:
            return len(self.t)
        if self.authority is not None and rank > self.authority:
            self.ignored[_OTHER_RANK] += 1
            return None
        if code == EventCode.ALIVE:
            return len(self.t)
        self.authority = rank
        return self._switch_rank(rank)

    def _switch_rank(self, rank: int) -> int:
        """Make `rank` the one that counts; keep checkpoints and liveness of others."""
        kept = [
            code in CHECKPOINTS or (code == EventCode.ALIVE and arg <= rank)
            for code, arg in zip(self.code, self.arg, strict=True)
        ]
        if all(kept):
            return len(self.t)
        self.ignored[_OTHER_RANK] += kept.count(False)
        first = kept.index(False)
        self.t = array("q", compress(self.t, kept))
        self.code = bytearray(compress(self.code, kept))
        self.arg = array("i", compress(self.arg, kept))
        self._edges = None
        return first

    def _admitted(
        self, times: array[int], kinds: bytearray, numbers: array[int], rank: int
    ) -> tuple[int, array[int], bytearray, array[int]]:
        """Return the first row that changes due to the rank, and its events that count."""
        codes = set(kinds)
        changed = len(self.t)
        if rank != self.authority:
            for code in sorted(codes - CHECKPOINTS - {EventCode.ALIVE}) + [EventCode.ALIVE] * (
                EventCode.ALIVE in codes
            ):
                before = self.ignored[_OTHER_RANK]
                first = self._admit(code, rank)
                if first is None:
                    self.ignored[_OTHER_RANK] = before + kinds.count(code)
                    kept = [kind != code for kind in kinds]
                    times, numbers = array("q", compress(times, kept)), array("i", compress(numbers, kept))
                    kinds = bytearray(compress(kinds, kept))
                else:
                    changed = min(changed, first)
        if not codes.isdisjoint(_WITH_RANK):
            for row, code in enumerate(kinds):
                if code in _WITH_RANK:
                    numbers[row] = self._encode(code, numbers[row], rank)
        return changed, times, kinds, numbers

    def _encode(self, code: int, arg: Arg, rank: int) -> int:
        if code in _NUMERIC:
            return arg if type(arg) is int else int(arg)  # type: ignore[arg-type]
        if code == EventCode.ALIVE:
            return rank
        kept: Arg | RankedStep = (arg, rank) if code in _PER_RANK and isinstance(arg, int) else arg
        number = self._numbers.get(kept)
        if number is None:
            number = self._numbers[kept] = len(self.table)
            self.table.append(kept)
        return number

    def _sort_key(self, code: int, number: int) -> tuple[int, int, int | str]:
        numeric = code in _NUMERIC or code == EventCode.ALIVE
        return PRECEDENCE[code], code, number if numeric else str(self.table[number])

    def _insert_row(self, t: int, code: int, number: int) -> int | None:
        """Return the row for a new event; None if the log has it."""
        first, end = bisect_left(self.t, t), bisect_right(self.t, t)
        key = self._sort_key(code, number)
        row = bisect_left(range(end), key, first, key=self._key_at)
        return None if row < end and self._key_at(row) == key else row

    def _key_at(self, row: int) -> tuple[int, int, int | str]:
        return self._sort_key(self.code[row], self.arg[row])

    def _sort_order(self, times: array[int], kinds: bytearray) -> list[int] | None:
        if _sorted(times):
            return None
        keys = [t << 3 | PRECEDENCE[kind] for t, kind in zip(times, kinds, strict=True)]
        return sorted(range(len(keys)), key=keys.__getitem__)

    def _deduplicated(
        self, times: array[int], kinds: bytearray, numbers: array[int]
    ) -> tuple[array[int], bytearray, array[int]]:
        """Sort the events of each moment and drop duplicates."""
        precedences = kinds.translate(_PRECEDENCE_TABLE)
        ties = compress(count(), map(eq, times, times[1:]))
        unordered = [row for row in ties if precedences[row] >= precedences[row + 1]]
        duplicates: list[int] = []
        done = 0
        for row in unordered:
            if row < done:
                continue
            first, done = bisect_left(times, times[row]), bisect_right(times, times[row])
            both = zip(kinds[first:done], numbers[first:done], strict=True)
            group = sorted((self._sort_key(*each), *each) for each in both)
            for at, (key, code, number) in enumerate(group):
                kinds[first + at], numbers[first + at] = code, number
                if at and key == group[at - 1][0]:
                    duplicates.append(first + at)
        if duplicates:
            kept = bytearray(repeat(1, len(times)))
            for row in duplicates:
                kept[row] = 0
            times, kinds = array("q", compress(times, kept)), bytearray(compress(kinds, kept))
            numbers = array("i", compress(numbers, kept))
        return times, kinds, numbers

    def _edge_times(self, code: int) -> array[int]:
        """Return the times of a code, without duplicates within a second (R2)."""
        edges = array("q")
        row = self.code.find(code)
        while row >= 0:
            if not edges or self.t[row] - edges[-1] > DUPLICATE_US:
                edges.append(self.t[row])
            row = self.code.find(code, row + 1)
        return edges


def _sorted(times: Iterable[int]) -> bool:
    column = times if isinstance(times, array) else array("q", times)
    return all(map(le, column, column[1:]))
