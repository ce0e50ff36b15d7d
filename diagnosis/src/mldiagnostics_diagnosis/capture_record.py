"""Hosts of a session as its `capture.json` has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.findings import FindingHost
from mldiagnostics.layout import RUN_RECORD, capture_record_key, trace_stem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.store import Store


MAX_RECORD_BYTES = 64 * 2**20
MAX_TEXT = 253
CAPTURED = "Captured"
NARROWING = ("ranks", "slices", "nodes", "replicatedJob", "container")
"""Fields of `target` that leave out hosts of the workload."""


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """The targets of a capture."""

    hosts: dict[str, FindingHost]
    missing: tuple[str, ...]
    """One sentence for each host without a trace and a summary."""
    narrowed_by: str | None = None
    """Field of the request that may have left out hosts of the job; None if all hosts are targets."""


def read_record(store: Store, session: str, *, traced: Sequence[str]) -> CaptureRecord:
    """Return the hosts of a session; none without a readable record.

    Args:
        store: Store of the log directory.
        session: Name of the session.
        traced: Hosts with a trace or a summary, by the stem of its file.
    """
    content = _document(store, capture_record_key(session))
    targets = content.get("targets")
    rows = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    known = {name: _host(name, each) for each in rows if (name := _stem(each))}
    missing = [_problem(each) for each in rows if _stem(each) not in traced]
    narrowed_by = _narrowing(content, len(rows))
    if narrowed_by and _is_whole(store, len(rows)):
        narrowed_by = None
    return CaptureRecord(known, tuple(missing), narrowed_by)


def _document(store: Store, key: str) -> dict[str, Any]:
    """Return a stored JSON object; empty if it cannot be read."""
    try:
        with store.open(key) as file:
            content = json.loads(file.read(MAX_RECORD_BYTES))
    except (MLDiagnosticsError, OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _problem(target: dict[str, Any]) -> str:
    host = _text(target.get("pod")) or _stem(target) or "a host"
    if target.get("state") == CAPTURED:
        return f"{host}: has neither a trace nor a summary in this session; capture the session again"
    return f"{host}: has no trace: {_text(target.get('reason')) or 'not captured'}; capture the session again"


def _narrowing(record: dict[str, Any], targets: int) -> str | None:
    """Return the field of the request that may have left out hosts; None without one."""
    trigger = _part(_part(record, "requested"), "triggerCapture")
    target = _part(trigger, "target")
    if trigger.get("podName"):
        return "podName"
    for field in NARROWING:
        if target.get(field):
            return f"target.{field}"
    limit = target.get("limit")
    return "target.limit" if isinstance(limit, int) and limit <= targets else None


def _is_whole(store: Store, targets: int) -> bool:
    """Return whether the targets are all processes of the run in `run.json`."""
    size = _document(store, RUN_RECORD).get("worldSize")
    return isinstance(size, int) and 0 < size <= targets


def _part(document: dict[str, Any], name: str) -> dict[str, Any]:
    part = document.get(name)
    return part if isinstance(part, dict) else {}


def _stem(target: dict[str, Any]) -> str:
    file = _text(target.get("file"), most=4096)
    return trace_stem(file) or _text(target.get("stem"))


def _host(name: str, target: dict[str, Any]) -> FindingHost:
    rank = target.get("rank")
    is_rank = isinstance(rank, int) and not isinstance(rank, bool) and rank >= 0
    return FindingHost(
        name, rank if is_rank else None, _text(target.get("pod")) or None, _text(target.get("node")) or None
    )


def _text(value: object, *, most: int = MAX_TEXT) -> str:
    return value if isinstance(value, str) and len(value) <= most and value.isprintable() else ""
