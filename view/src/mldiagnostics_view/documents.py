"""JSON documents of runs; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.text.strict_json import finite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics_view.sources.catalog import SourceList
    from mldiagnostics_view.sources.source import ListedRun, RunDetail

__all__ = ["run_document", "runs_document"]


def runs_document(lists: Sequence[SourceList]) -> dict[str, Any]:
    """Return the list of runs of all sources, the newest first."""
    rows = [(source.name, run) for source in lists for run in source.runs]
    rows.sort(key=lambda each: (-(each[1].row.created or 0.0), each[0], each[1].key))
    return {
        "sources": [
            {"name": each.name, "place": each.place, "problem": each.problem or None, "runs": len(each.runs)}
            for each in lists
        ],
        "runs": [_listed(source, run) for source, run in rows],
    }


def _listed(source: str, run: ListedRun) -> dict[str, Any]:
    row = run.row
    return {
        **row.to_json(),
        "source": source,
        "key": run.key,
        "profileSessions": None if row.sessions is None else len(row.sessions),
    }


def run_document(source: str, key: str, detail: RunDetail) -> dict[str, Any]:
    """Return one run: header, attempts, hosts, profiles and configurations."""
    document: dict[str, Any] = {
        "source": source,
        "key": key,
        "run": detail.row.to_json(),
        "hasFiles": detail.has_files,
        "attempts": [attempt.to_json() for attempt in detail.attempts],
        "hosts": [host.to_json() for host in detail.hosts],
        "sessions": [session.to_json() for session in detail.sessions],
        "configs": finite(dict(detail.configs)),
    }
    return document
