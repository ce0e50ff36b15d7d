"""Tracks of a run: goodput, steps, captures, events and metrics."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import LogUnreadable, MLDiagnosticsError
from mldiagnostics.goodput.load_reports import ReportQuery, read
from mldiagnostics.goodput.render.timeline import pieces
from mldiagnostics.layout import CAPTURE_RECORD
from mldiagnostics.runs import read_records, sessions
from mldiagnostics.store import open_store

from mldiagnostics_cli.output import note
from mldiagnostics_cli.trace.entries import LogEntry, MetricSample, of_document
from mldiagnostics_cli.trace.moments import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.goodput.account import TimelineSegment
    from mldiagnostics.pipeline.records import Kind, Record
    from mldiagnostics.runs import RunRow, SessionRow

    from mldiagnostics_cli.trace.events import TraceEvents


_SHOWN: frozenset[Kind] = frozenset({"metric", "event", "phase", "session", "drop"})


def run_events(events: TraceEvents, run: RunRow, *, now: int, log: str) -> Iterator[str]:
    """Yield the events of a run: goodput, captures and records.

    Args:
        events: Events of the trace.
        run: The run, with a directory that can be read.
        now: End of the goodput of a run that goes on, in microseconds; that of another run ends where it stopped.
        log: Place of its goodput events.
    """
    title = run.name or run.run_id[:16]
    yield from _goodput_events(events, run, title, now=now, log=log)
    for session in sessions(run):
        yield from _session_events(events, session, title)
    root, _, folder = run.directory.rpartition("/")
    for record in read_records(root or "/", folder, kinds=_SHOWN):
        item = None
        with suppress(ValueError, RecursionError):  # left out, as a broken line is
            item = of_document(_shown(record))
        if isinstance(item, MetricSample):
            yield events.sample(item, f"{title}: ")
        elif isinstance(item, LogEntry):
            yield events.log(item._replace(process=f"{title}: {item.process}"), title)


def _goodput_events(events: TraceEvents, run: RunRow, title: str, *, now: int, log: str) -> Iterator[str]:
    process = f"{title}: goodput"
    try:
        [(report, view)] = read([log], ReportQuery(now=now, row=run))
    except LogUnreadable as error:
        note(f"{title}: has no track of goodput: {error}")
        return
    end = round(report.cumulative.end * 1e6)
    steps: list[TimelineSegment] = []
    for piece in pieces(_kept(view.timeline(end), steps), resolution=0):
        [kind] = piece.kinds
        details = {"firstStep": piece.first_step, "lastStep": piece.last_step} if piece.last_step is not None else {}
        yield events.span((process, "time"), kind, start=piece.start, end=piece.end, details=details)
        for step in steps:
            yield events.span((process, "steps"), f"step {step.step}", start=step.start, end=step.end)
        steps.clear()


def _kept(segments: Any, steps: list[TimelineSegment]) -> Iterator[TimelineSegment]:
    """Yield the segments, and keep those of productive steps for a track of their own."""
    for segment in segments:
        if segment.spent is None and segment.step is not None:
            steps.append(segment)
        yield segment


def _session_events(events: TraceEvents, session: SessionRow, title: str) -> Iterator[str]:
    process = f"{title}: profiles"
    windows = list(_windows(session)) if session.kind == "capture" else []
    for host, start, end in windows:
        yield events.span((process, host), session.name, start=start, end=end, details={"session": session.url})
    if not windows and session.t is not None:
        entry = LogEntry(round(session.t * 1e6), f"{session.name} stored\n{session.url}", process, "stored")
        yield events.log(entry, process)


def _windows(session: SessionRow) -> Iterator[tuple[str, int, int]]:
    """Yield host, start and end of the recordings of a capture."""
    try:
        with open_store(session.url).open(CAPTURE_RECORD) as file:
            targets = json.load(file)["targets"]
        for target in targets:
            start, end = microseconds(target.get("start")), microseconds(target.get("stop"))
            if start is not None and end is not None and start <= end:
                yield str(target.get("pod") or target.get("stem") or target.get("host")), start, end
    except (MLDiagnosticsError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        note(f"{session.url}/{CAPTURE_RECORD}: is not valid: {error}; the capture is shown when it was stored")


def _shown(record: Record) -> dict[str, Any]:
    return {"v": 1, **record._asdict()}
