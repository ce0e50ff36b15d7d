"""The result of the fold, as columns that only grow or are cut back; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TypeAlias

from mldiagnostics.goodput.ledger.intervals import Intervals

FAR = 2**62

Lengths: TypeAlias = "tuple[int, int, int, int, int, int]"


class FoldedColumns:
    """Columns of steps, attempts, spans, loads and marks; times are microseconds."""

    def __init__(self) -> None:
        self.index = array("i")
        self.at = array("q")
        """Steps: index and start, in order of their starts."""
        self.first = array("q")
        self.begin = array("q")
        self.ended = array("q")
        self.back = array("q")
        """Attempts with steps: row of the first step, begin, known end of the previous attempt's last step (negative
        if unknown, R4), and the first restart event after that step."""
        self.span_start = array("q")
        self.span_end = array("q")
        self.span_kind = array("i")
        self.reach = array("q")
        """Spans in the order in which they were added; `reach` is the latest end so far."""
        self.loads = Intervals()
        self.blocking = Intervals()
        """All data loads, and those that block: the first load of an attempt is a span, the others are an overlay."""
        self.mark_t = array("q")
        self.mark_code = array("b")
        self.mark_arg = array("i")
        """Slice counts, causes and starts of elastic waits."""
        self.dirty = FAR
        """Time from which the span overlay is stale."""
        self.stable_attempts = FAR
        self.stable_steps = FAR
        """Number of attempts and steps that `cut` has kept since the reader set these to `FAR`."""

    def add_span(self, start: int, end: int, kind: int) -> None:
        """Add a closed span."""
        self.span_start.append(start)
        self.span_end.append(end)
        self.span_kind.append(kind)
        self.reach.append(max(end, self.reach[-1]) if self.reach else end)
        self.dirty = min(self.dirty, start)

    def add_mark(self, t: int, code: int, arg: int) -> None:
        """Add a mark."""
        self.mark_t.append(t)
        self.mark_code.append(code)
        self.mark_arg.append(arg)

    def spans_after(self, t: int) -> list[tuple[int, int, int]]:
        """Return start, end and kind of the spans that end after `t`."""
        row = bisect_right(self.reach, t)
        spans = zip(self.span_start[row:], self.span_end[row:], self.span_kind[row:], strict=True)
        return [span for span in spans if span[1] > t]

    def columns(self) -> list[array[int]]:
        """Return all columns, in the order of the snapshot's format."""
        steps = [self.index, self.at, self.first, self.begin, self.ended, self.back]
        spans = [self.span_start, self.span_end, self.span_kind, self.reach]
        loads = [each for part in (self.loads, self.blocking) for each in (part.start, part.end, part.sums)]
        return [*steps, *spans, *loads, self.mark_t, self.mark_code, self.mark_arg]

    def lengths(self) -> Lengths:
        """Return the lengths of the columns, for `cut`."""
        spans, loads = len(self.span_start), len(self.loads)
        return len(self.at), len(self.first), spans, loads, len(self.blocking), len(self.mark_t)

    def cut(self, lengths: Lengths) -> None:
        """Cut the columns back to these lengths."""
        steps, attempts, spans, loads, blocking, marks = lengths
        self.stable_attempts, self.stable_steps = min(self.stable_attempts, attempts), min(self.stable_steps, steps)
        del self.index[steps:], self.at[steps:]
        del self.first[attempts:], self.begin[attempts:], self.ended[attempts:], self.back[attempts:]
        self.dirty = min(self.dirty, min(self.span_start[spans:], default=FAR))
        del self.span_start[spans:], self.span_end[spans:], self.span_kind[spans:], self.reach[spans:]
        self.loads.cut(loads)
        self.blocking.cut(blocking)
        del self.mark_t[marks:], self.mark_code[marks:], self.mark_arg[marks:]
