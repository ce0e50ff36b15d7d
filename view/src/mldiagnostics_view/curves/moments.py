"""Steps at which attempts and profiles of a run began."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mldiagnostics_view.curves.reader import CurveReader

__all__ = ["moments_of"]


def moments_of(reader: CurveReader) -> dict[str, Any]:
    """Return the first steps of processes, and the starts of profiles, as JSON.

    `starts` has time and step of the first step of each process of the lowest rank, by time. `sessions` has the same
    of each profile by its name: a profile without a step has the step that ran then.
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
    return {"starts": [{"t": t, "step": int(step)} for t, step in starts], "sessions": sessions}
