"""The content of `capture.json`: owner of the session, request, and outcomes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics import layout
from mldiagnostics_api.resources import CONNECTIONS

from mldiagnostics_operator.captures.outcomes import moment, skew

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime, timedelta

    from mldiagnostics_api.captures.location import Location
    from mldiagnostics_api.captures.plan import CapturePlan, PlannedTarget, SkippedTarget
    from mldiagnostics_api.v1alpha1 import MLDiagnosticsConnection

    from mldiagnostics_operator.captures.outcomes import TargetOutcome

FORMAT: Final = 1
PLANNED: Final = "Planned"

_BEGINNING: Final = re.compile(rb'\{\s*"v": \d+,\s*"session": "[^"\\]*",\s*"uid": "(?P<uid>[!#-\[\]-~]+)"')
"""The first keys of a record, in the order in which they are written."""
_NAMESPACE: Final = re.compile(
    _BEGINNING.pattern
    + rb',\s*"object": \{\s*"apiVersion": "[^"\\]*",\s*"kind": "[^"\\]*",\s*"namespace": "([a-z0-9-]+)"'
)


def claim(
    connection: MLDiagnosticsConnection, plan: CapturePlan, directory: Location, versions: Mapping[str, str]
) -> bytes:
    """Return the record that claims a session; its targets are only planned."""
    targets = [
        {**_about(target), "file": _file(plan, target), "state": PLANNED}
        for target in plan.targets
        if target.directory == directory
    ]
    return _encode({**_head(connection, plan, versions), "targets": targets, "skewMilliseconds": None})


def complete(
    connection: MLDiagnosticsConnection,
    plan: CapturePlan,
    directory: Location,
    outcomes: Iterable[TargetOutcome],
    versions: Mapping[str, str],
) -> bytes:
    """Return the record of a finished capture.

    It has the targets of this log directory, and those without a directory.
    """
    here = [outcome for outcome in outcomes if outcome.target.directory in (directory, None)]
    return _encode(
        {**_head(connection, plan, versions), "targets": [_entry(e) for e in here], "skewMilliseconds": _ms(skew(here))}
    )


def owner(content: bytes) -> str | None:
    """Return the uid of the record's object; None if the content is not a record.

    The first `HEAD_BYTES` suffice. They are not parsed as JSON: others may have written the file, and a hostile
    document takes many times its size in memory.
    """
    begins = _BEGINNING.match(content)
    return begins["uid"].decode() if begins else None


def namespace(content: bytes) -> str | None:
    """Return the namespace of the record's object, as `owner` returns its uid."""
    begins = _NAMESPACE.match(content)
    return begins[2].decode() if begins else None


def _head(connection: MLDiagnosticsConnection, plan: CapturePlan, versions: Mapping[str, str]) -> dict[str, Any]:
    metadata = connection.metadata
    return {
        "v": FORMAT,
        "session": plan.session,
        "uid": metadata.uid,
        "object": {
            "apiVersion": CONNECTIONS.api_version,
            "kind": CONNECTIONS.kind,
            "namespace": metadata.namespace,
            "name": metadata.name,
        },
        "requested": connection.spec.model_dump(mode="json", by_alias=True, exclude_none=True),
        "plannedStart": _text(plan.planned_start),
        "deadline": _text(plan.deadline),
        "attempt": plan.attempt,
        "versions": dict(versions),
    }


def _about(target: PlannedTarget | SkippedTarget) -> dict[str, Any]:
    return {
        "pod": target.pod,
        "uid": target.uid or None,
        "node": target.node or None,
        "rank": target.rank,
        "slice": target.slice,
        "localRank": target.local_rank,
        "port": target.port,
        "runId": target.run_id,
    }


def _entry(outcome: TargetOutcome) -> dict[str, Any]:
    return {
        **_about(outcome.target),
        "state": str(outcome.state),
        "reason": outcome.reason,
        "message": outcome.message or None,
        "file": outcome.file,
        "bytes": outcome.bytes,
        "sha256": outcome.sha256,
        "start": _text(moment(outcome.start_ns)),
        "stop": _text(moment(outcome.stop_ns)),
        "serverProbe": outcome.server and str(outcome.server),
    }


def _file(plan: CapturePlan, target: PlannedTarget) -> str:
    return f"{target.directory}/{layout.trace_key(plan.session, target.stem)}"


def _text(time: datetime | None) -> str | None:
    return time.isoformat().replace("+00:00", "Z") if time else None


def _ms(span: timedelta | None) -> float | None:
    return None if span is None else span.total_seconds() * 1000


def _encode(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, indent=1, ensure_ascii=False).encode()
