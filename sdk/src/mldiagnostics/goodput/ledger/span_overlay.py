"""The visible span at each moment where spans overlap (R5, R12, R13); pure.

The span that began later wins, then the shorter one, then the first in the order of buckets. Spans of accelerator
initialisation and preparation inside a re-initialisation are hidden by it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from heapq import heappop, heappush
from typing import TYPE_CHECKING, TypeAlias

from mldiagnostics.goodput.account import Bucket
from mldiagnostics.goodput.buckets import BadputType
from mldiagnostics.goodput.ledger.folded_columns import FAR
from mldiagnostics.goodput.ledger.intervals import Intervals
from mldiagnostics.goodput.ledger.rules import CUSTOM

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Span: TypeAlias = "tuple[int, int, int]"
"""Start, end and kind."""

_REINIT = BadputType.ELASTIC_REINITIALIZATION.value
_INSIDE_REINIT = frozenset({BadputType.TPU_INITIALIZATION.value, BadputType.TRAINING_PREP.value})


class SpanOverlay:
    """Visible spans: `cover` with the `kind` of each interval, and by kind."""

    def __init__(self, names: Sequence[object]) -> None:
        self.names = names
        """Types of custom events; kind `CUSTOM + n` has type `names[n]`."""
        self.cover = Intervals()
        self.kind = array("i")
        self.by_kind: dict[int, Intervals] = {}
        self._buckets: dict[int, Bucket] = {}

    def rebuild(self, since: int, spans: Sequence[Span]) -> None:
        """Rebuild from `since` on; `spans` are all that end later."""
        self.cover.clip(since)
        del self.kind[len(self.cover) :]
        for intervals in self.by_kind.values():
            intervals.clip(since)
        for start, end, kind in _visible(since, sorted(spans), self._order):
            self.cover.append(start, end)
            self.kind.append(kind)
            if kind not in self.by_kind:
                self.by_kind[kind] = Intervals()
            self.by_kind[kind].append(start, end)

    def uncovered(self, start: int, end: int) -> int:
        """Return the time in [start, end) that no span covers."""
        return end - start - self.cover.before(end) + self.cover.before(start)

    def covered(self, start: int, end: int, kinds: Sequence[int]) -> int:
        """Return the time in [start, end) in which spans of these kinds are visible."""
        columns = [self.by_kind[kind] for kind in kinds if kind in self.by_kind]
        return sum(intervals.before(end) - intervals.before(start) for intervals in columns)

    def between(self, start: int, end: int) -> Iterator[Span]:
        """Yield the visible spans within [start, end), in order."""
        first = bisect_right(self.cover.end, start)
        for row in range(first, bisect_left(self.cover.start, end)):
            yield max(start, self.cover.start[row]), min(end, self.cover.end[row]), self.kind[row]

    def bucket_of(self, kind: int) -> Bucket:
        """Return the bucket of a span kind."""
        bucket = self._buckets.get(kind)
        if bucket is None:
            number, custom = self._order(kind)
            bucket = self._buckets[kind] = Bucket(BadputType(number), custom)
        return bucket

    def _order(self, kind: int) -> tuple[int, str]:
        return (kind, "") if kind < CUSTOM else (BadputType.CUSTOM_BADPUT_EVENTS.value, str(self.names[kind - CUSTOM]))


class _ActiveSpans:
    """Spans that are open, the visible one on top (R12).

    The order is: later start, earlier end, order of buckets.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, tuple[int, str], int]] = []

    def add(self, span: Span, order: tuple[int, str]) -> None:
        start, end, kind = span
        heappush(self._heap, (-start, end, order, kind))

    def top(self, now: int) -> tuple[int, int, tuple[int, str], int] | None:
        """Return the top span that is not over."""
        while self._heap and self._heap[0][1] <= now:
            heappop(self._heap)
        return self._heap[0] if self._heap else None


def _visible(since: int, spans: Sequence[Span], order: Callable[[int], tuple[int, str]]) -> Iterator[Span]:
    """Yield the visible spans from `since` on, with neighbours of a kind joined.

    `spans` are sorted by their starts.
    """
    regular, suppressed = _ActiveSpans(), _ActiveSpans()
    added, now, reinit = 0, since, since
    current: Span | None = None
    while True:
        while added < len(spans) and spans[added][0] <= now:
            span = spans[added]
            (suppressed if span[2] in _INSIDE_REINIT else regular).add(span, order(span[2]))
            reinit = max(reinit, span[1]) if span[2] == _REINIT else reinit
            added += 1
        next_start = spans[added][0] if added < len(spans) else FAR
        candidates = [top for top in (regular.top(now), suppressed.top(now) if reinit <= now else None) if top]
        if candidates:
            best = min(candidates)
            until = min(next_start, best[1], reinit if reinit > now else next_start)
            if current and current[1] == now and current[2] == best[3]:
                current = current[0], until, best[3]
            else:
                if current:
                    yield current
                current = now, until, best[3]
            now = until
        elif next_start < FAR:
            now = next_start
        else:
            break
    if current:
        yield current
