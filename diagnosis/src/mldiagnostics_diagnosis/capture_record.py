"""Hosts of a session as its `capture.json` has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.findings import FindingHost
from mldiagnostics.layout import capture_record_key, trace_stem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.store import Store


MAX_RECORD_BYTES = 64 * 2**20
MAX_TEXT = 253
CAPTURED = "Captured"


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """The targets of a capture."""

    hosts: dict[str, FindingHost]
    missing: tuple[str, ...]
    """One sentence for each host without a trace."""


def read_record(store: Store, session: str, *, traced: Sequence[str]) -> CaptureRecord:
    """Return the hosts of a session; none without a readable record.

    Args:
        store: Store of the log directory.
        session: Name of the session.
        traced: Hosts with a trace, by the stem of its file.
    """
    try:
        with store.open(capture_record_key(session)) as file:
            content = json.loads(file.read(MAX_RECORD_BYTES))
    except (MLDiagnosticsError, OSError, ValueError, RecursionError):
        return CaptureRecord({}, ())
    targets = content.get("targets") if isinstance(content, dict) else None
    rows = [each for each in targets if isinstance(each, dict)] if isinstance(targets, list) else []
    known = {name: _host(name, each) for each in rows if (name := _stem(each))}
    missing = [
        f"{_text(each.get('pod')) or _stem(each) or 'a host'}: has no trace: "
        f"{_text(each.get('reason')) or 'not captured'}; capture the session again"
        for each in rows
        if each.get("state") != CAPTURED and _stem(each) not in traced
    ]
    return CaptureRecord(known, tuple(missing))


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
