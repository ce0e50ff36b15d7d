"""JSON documents of runs; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from mldiagnostics.text.strict_json import finite

from mldiagnostics_view.limits import MAX_DEPTH, MAX_LISTED, MAX_SHOWN_SESSIONS, MAX_TEXT_CHARS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_api.captures.capture_object import CaptureStatus

    from mldiagnostics_view.sources.catalog import SourceList
    from mldiagnostics_view.sources.source import ListedRun, RunDetail


class RunActions(NamedTuple):
    """Actions that a viewer has for a run; see `Captures.obstacle`."""

    capture_obstacle: str | None
    can_open_xprof: bool


def json_text(document: Any) -> bytes:
    """Return a document as JSON."""
    try:
        return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:  # stored values: a part of a surrogate pair, a number above 2^64, or deep nesting
        return json.dumps(document, allow_nan=False).encode()


def runs_text(lists: Sequence[SourceList]) -> bytes:
    """Return the list of runs of all sources, the newest first, as JSON.

    Each open page needs it every few seconds, so the text of a run is made once for each of its versions.
    """
    rows = [(source.name, run) for source in lists for run in source.runs]
    rows.sort(key=lambda each: (-(each[1].row.created or 0.0), each[0], each[1].key))
    sources = [
        {"name": each.name, "place": each.place, "problem": each.problem or None, "runs": len(each.runs)}
        for each in lists
    ]
    texts = b",".join(_listed_text(source, run) for source, run in rows)
    return b'{"sources":' + json_text(sources) + b',"runs":[' + texts + b"]}"


def _listed_text(source: str, run: ListedRun) -> bytes:
    if run.text is None:
        row = run.row
        run.text = json_text(
            {
                **clipped(row.to_json()),
                "source": source,
                "key": run.key,
                "profileSessions": None if row.sessions is None else len(row.sessions),
            }
        )
    return run.text


def run_document(source: str, key: str, detail: RunDetail, actions: RunActions) -> dict[str, Any]:
    """Return one run: header, attempts, hosts, profiles, configurations, actions."""
    sessions = sorted(detail.sessions, key=lambda session: session.t or 0.0)[-MAX_SHOWN_SESSIONS:]
    document: dict[str, Any] = {
        "source": source,
        "key": key,
        "run": detail.row.to_json(),
        "attempts": [attempt.to_json() for attempt in detail.attempts[-MAX_LISTED:]],
        "hosts": [host.to_json() for host in detail.hosts[:MAX_LISTED]],
        "sessions": [session.to_json() for session in sessions],
        "findings": [finding.to_json() for finding in detail.findings],
        "configs": detail.row.configs,
        "canCapture": actions.capture_obstacle is None,
        "captureObstacle": actions.capture_obstacle or None,
        "canOpenXprof": actions.can_open_xprof,
    }
    omitted = {name: len(getattr(detail, name)) - len(document[name]) for name in ("attempts", "hosts", "sessions")}
    return {**clipped(document), "omitted": omitted}


def clipped(value: Any, depth: int = 0) -> Any:
    """Return a stored value as JSON, cut at the limits of texts, lists and depth."""
    if isinstance(value, str):
        return value if len(value) <= MAX_TEXT_CHARS else f"{value[:MAX_TEXT_CHARS]}…"
    if isinstance(value, float):
        return finite(value)
    if isinstance(value, Mapping | list | tuple) and depth == MAX_DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {clipped(str(name)): clipped(each, depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [clipped(each, depth + 1) for each in value[:MAX_LISTED]]
    return value


def capture_document(status: CaptureStatus) -> dict[str, Any]:
    """Return the progress of a capture, with its session once traces are stored."""
    return {
        "name": status.name,
        "namespace": status.namespace,
        "phase": status.phase or None,
        "isStarted": status.is_started,
        "isComplete": status.is_complete,
        "reason": status.reason or None,
        "message": status.message or None,
        "captured": status.captured,
        "total": status.total,
        "session": (status.session or None) if status.bytes else None,
    }
