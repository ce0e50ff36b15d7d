"""Moments of a run that its charts mark: attempts, profiles and texts."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from mldiagnostics_view.limits import MAX_MARK_CHARS, MAX_MARKED_TEXTS

if TYPE_CHECKING:
    from mldiagnostics_view.curves.reader import CurveReader


def moments_of(reader: CurveReader) -> dict[str, Any]:
    """Return the moments of a run as JSON.

    `starts` has time and step of the first step of each process of the lowest rank, by time. `sessions` has the same
    of each profile by its name: a profile without a step has the step that ran then.
    `texts` have the words of the program.
    """
    with reader.reading:
        lowest = min((process.rank for process in reader.beats), default=0)
        firsts = [
            next(curve.points("time", -inf, inf), None)
            for process, curve in reader.beats.items()
            if process.rank == lowest
        ]
        starts = sorted((t, step) for t, step, _ in filter(None, firsts))
        sessions = {}
        for name, (process, session) in reader.sessions.items():
            step = session.step
            if step is None and process in reader.beats:
                running = reader.beats[process].last_point("time", -inf, session.t)
                step = None if running is None else int(running[1])
            sessions[name] = {"t": session.t, "step": step}
        newest = reader.texts.newest()[-MAX_MARKED_TEXTS:]
    return {
        "starts": [{"t": t, "step": int(step)} for t, step in starts],
        "sessions": sessions,
        "texts": [{"t": row.t, "step": row.step, "text": f"{row.name}: {row.text}"[:MAX_MARK_CHARS]} for row in newest],
    }
