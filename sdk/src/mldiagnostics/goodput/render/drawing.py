"""The data of the page's timeline: lanes, marks and pieces of one run; pure.

Times are milliseconds since the start of the run. Each window has a layer of pieces, as fine as a screen can show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.render.palette import PRODUCTIVE, paint
from mldiagnostics.goodput.render.timeline import pieces
from mldiagnostics.goodput.render.words import duration, label
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from mldiagnostics.goodput.render.timeline import TimelinePiece
    from mldiagnostics.goodput.report import DisruptionReport, GoodputReport
    from mldiagnostics.goodput.report.view import RunView


FINEST = 1500
"""Intervals in a layer."""
CLOSE_UPS = 12
"""Number of last disruptions with a layer of their own."""


def drawing(report: GoodputReport, view: RunView, *, share: float = 1.0) -> dict[str, Any]:
    """Return the data for the page's script.

    `share` is this run's share of the page's size.
    """
    origin = round(report.started * 1e6)
    windows = list(_windows(report))
    fineness = max(100, min(FINEST, round(12 * FINEST * share / len(windows))))
    cuts = [round(attempt.stretch.start * 1e6) for attempt in report.attempts]
    kinds = {PRODUCTIVE: 0}
    layers = []
    for _, start, end in windows:
        begin, until = round(start * 1e6), round(end * 1e6)
        segments = view.timeline(round(report.now * 1e6), start=begin, end=until)
        drawn = pieces(segments, resolution=max(1, (until - begin) // fineness), cuts=cuts)
        layers.append({"from": (begin - origin) / 1e3, "to": (until - origin) / 1e3, "pieces": _rows(drawn, kinds)})
    return {
        "origin": report.started * 1e3,
        "kinds": [
            {"label": "productive" if kind == PRODUCTIVE else label(kind), **paint(kind)._asdict()} for kind in kinds
        ],
        "windows": [
            [name, (start - report.started) * 1e3, (end - report.started) * 1e3] for name, start, end in windows
        ],
        "layers": layers,
        "lanes": [
            [
                attempt.number,
                (attempt.stretch.start - report.started) * 1e3,
                (attempt.stretch.end - report.started) * 1e3,
            ]
            for attempt in report.attempts
        ],
        "marks": [
            [(disruption.lost - report.started) * 1e3, _sentence(disruption)] for disruption in report.disruptions
        ],
    }


def _windows(report: GoodputReport) -> Iterator[tuple[str, float, float]]:
    """Yield name, start and end of each window; those of disruptions are `#<number>`."""
    whole = report.cumulative
    yield "all", whole.start, whole.end
    if report.since_resume.start > whole.start:
        yield "since resume", report.since_resume.start, whole.end
    for window in report.windows:
        if window.start > whole.start and window.elapsed_s:
            yield f"last {duration(window.window_s)}", window.start, window.end
    first = max(0, len(report.disruptions) - CLOSE_UPS)
    for number, disruption in enumerate(report.disruptions[first:], start=first + 1):
        margin = max(1.0, disruption.recovery.total_s / 2)
        start = max(whole.start, disruption.lost - margin - disruption.wasted_s)
        yield f"#{number}", start, min(whole.end, disruption.lost + disruption.recovery.total_s + margin)


def _rows(drawn: Iterable[TimelinePiece], kinds: dict[str, int]) -> list[list[Any]]:
    """Return pieces as [length, first step, last step, kind or [kind, length, ...]]."""
    return [
        [(piece.end - piece.start) / 1e3, piece.first_step, piece.last_step, _mixture(piece.kinds, kinds)]
        for piece in drawn
    ]


def _mixture(lengths: Mapping[str, int], kinds: dict[str, int]) -> int | list[float]:
    if len(lengths) == 1:
        (kind,) = lengths
        return kinds.setdefault(kind, len(kinds))
    largest_first = sorted(lengths.items(), key=lambda item: -item[1])
    return [part for kind, length in largest_first for part in (kinds.setdefault(kind, len(kinds)), length / 1e3)]


def _sentence(disruption: DisruptionReport) -> str:
    steps = f"{counted(disruption.steps_lost, 'step')} lost"
    back = (
        f"resumed after {duration(disruption.recovery.total_s)}"
        if disruption.resumed is not None
        else "not resumed yet"
    )
    return f"{disruption.cause}: {steps}, {back}"
