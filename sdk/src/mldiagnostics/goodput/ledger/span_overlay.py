"""Spans that lie over each other, as one picture: at each moment the one that says most (S7); pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.ledger.intervals import Intervals
from mldiagnostics.goodput.ledger.rules import CUSTOM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Span: TypeAlias = "tuple[int, int, int]"
"""Start, end and kind."""

_FAR = 2**62
_REINIT = BadputType.ELASTIC_REINITIALIZATION.value
_OWNED = frozenset({BadputType.TPU_INITIALIZATION.value, BadputType.TRAINING_PREP.value})


class SpanOverlay:
    """What is seen of the spans: `cover` with a kind for each stretch, and the same for each kind alone."""

    def __init__(self, names: Sequence[object]) -> None:
        self.names = names
        """Types of custom events, by what their kind is above `CUSTOM`."""
        self.cover = Intervals()
        self.kind = array("i")
        self.of_kind: dict[int, Intervals] = {}
        self._spent: dict[int, Bucket] = {}

    def repaint(self, since: int, spans: Sequence[Span]) -> None:
        """Paint anew from `since` on; `spans` are all that end later."""
        self.cover.clip(since)
        del self.kind[len(self.cover) :]
        for of_kind in self.of_kind.values():
            of_kind.clip(since)
        for start, end, kind in _seen(since, sorted(spans), self._order):
            self.cover.append(start, end)
            self.kind.append(kind)
            if kind not in self.of_kind:
                self.of_kind[kind] = Intervals()
            self.of_kind[kind].append(start, end)

    def free(self, start: int, end: int) -> int:
        """Return how much of a stretch no span covers."""
        return end - start - self.cover.before(end) + self.cover.before(start)

    def covered(self, start: int, end: int, kinds: Sequence[int]) -> int:
        """Return for how long spans of some kinds are seen in a stretch."""
        found = [self.of_kind[kind] for kind in kinds if kind in self.of_kind]
        return sum(of_kind.before(end) - of_kind.before(start) for of_kind in found)

    def between(self, start: int, end: int) -> Iterator[Span]:
        """Return what is seen in a stretch, in order."""
        first = bisect_right(self.cover.end, start)
        for place in range(first, bisect_left(self.cover.start, end)):
            yield max(start, self.cover.start[place]), min(end, self.cover.end[place]), self.kind[place]

    def spent(self, kind: int) -> Bucket:
        """Return the bucket of a kind."""
        found = self._spent.get(kind)
        if found is None:
            number, custom = self._order(kind)
            found = self._spent[kind] = Bucket(BadputType(number), custom)
        return found

    def _order(self, kind: int) -> tuple[int, str]:
        return (kind, "") if kind < CUSTOM else (BadputType.CUSTOM_BADPUT_EVENTS.value, str(self.names[kind - CUSTOM]))


class _ActiveSpans:
    """Spans that have begun, the one that says most on top: begun last, shortest, first in order of buckets."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, tuple[int, str], int]] = []

    def add(self, span: Span, order: tuple[int, str]) -> None:
        start, end, kind = span
        heappush(self._heap, (-start, end, order, kind))

    def top(self, now: int) -> tuple[int, int, tuple[int, str], int] | None:
        """Return the one on top that is not over."""
        while self._heap and self._heap[0][1] <= now:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


def _seen(since: int, spans: Sequence[Span], order: Callable[[int], tuple[int, str]]) -> Iterator[Span]:
    """Return what is seen from `since` on of spans that are sorted by their starts, neighbours of a kind as one."""
    free, owned = _ActiveSpans(), _ActiveSpans()
    place, now, reinit = 0, since, since
    begun: Span | None = None
    while True:
        while place < len(spans) and spans[place][0] <= now:
            span = spans[place]
            (owned if span[2] in _OWNED else free).add(span, order(span[2]))
            reinit = max(reinit, span[1]) if span[2] == _REINIT else reinit
            place += 1
        following = spans[place][0] if place < len(spans) else _FAR
        candidates = [top for top in (free.top(now), owned.top(now) if reinit <= now else None) if top]
        if candidates:
            best = min(candidates)
            until = min(following, best[1], reinit if reinit > now else following)
            if begun and begun[1] == now and begun[2] == best[3]:
                begun = begun[0], until, best[3]
            else:
                if begun:
                    yield begun
                begun = now, until, best[3]
            now = until
        elif following < _FAR:
            now = following
        else:
            break
    if begun:
        yield begun
