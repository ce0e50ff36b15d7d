"""The report of a capture, and the `capture.json` beside its traces."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from mldiagnostics.capture.model import Options, Outcome, Target
from mldiagnostics.text.strict_json import dumps

RECORD_VERSION = 1

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True, slots=True)
class CaptureReport:
    """Result of a capture.

    Attributes:
        session: name of the session.
        directory: log directory for XProf.
        outcomes: one per target, in the order of the targets.
        skew_ms: milliseconds between the first and the last start of a recording, by the hosts' clocks; None with fewer
            than two known starts.
    """

    session: str
    directory: str
    outcomes: tuple[Outcome, ...]
    skew_ms: float | None


def skew_ms(outcomes: Sequence[Outcome]) -> float | None:
    """Return milliseconds from the first to the last start; None with fewer than two."""
    starts = [outcome.start_ns for outcome in outcomes if outcome.start_ns is not None]
    return (max(starts) - min(starts)) / 1e6 if len(starts) > 1 else None


def record(
    *, uid: str, options: Options, targets: Sequence[Target], outcomes: Sequence[Outcome], started_ns: int, version: str
) -> bytes:
    """Return the content of `capture.json` for a capture without a Kubernetes object.

    `outcomes` are empty at the start. `started_ns` is the start of the deadline in Unix nanoseconds.
    """
    known = {outcome.target: outcome for outcome in outcomes}
    content = {
        "v": RECORD_VERSION,
        "session": options.session,
        "uid": uid,
        "requested": {
            "addresses": [target.address for target in targets],
            "durationMilliseconds": options.duration_ms,
            "tracers": {
                "host": options.tracers.host,
                "device": options.tracers.device,
                "python": options.tracers.python,
            },
            "delivery": str(options.delivery),
            "allowOldServer": options.allow_old_server,
        },
        "plannedStart": _moment(options.start_ns),
        "deadline": _moment(started_ns + int(options.deadline_s * 1e9)),
        "attempt": 1,
        "targets": [_target(target, known.get(target)) for target in targets],
        "skewMilliseconds": skew_ms(outcomes),
        "versions": {"mldiagnostics": version},
    }
    return dumps(content, indent=1).encode()


def _target(target: Target, outcome: Outcome | None) -> dict[str, Any]:
    fields: dict[str, Any] = {"host": target.host, "stem": target.stem, "port": target.port}
    if outcome is None:
        return fields
    return fields | {
        "state": str(outcome.state),
        "reason": str(outcome.reason),
        "message": outcome.message,
        "file": outcome.file,
        "bytes": outcome.bytes,
        "sha256": outcome.sha256,
        "start": _moment(outcome.start_ns),
        "stop": _moment(outcome.stop_ns),
        "serverProbe": str(outcome.server) if outcome.server else None,
    }


def _moment(ns: int | None) -> str | None:
    """Return RFC 3339 in UTC with microseconds."""
    if ns is None:
        return None
    return (_EPOCH + timedelta(microseconds=ns // 1000)).isoformat(timespec="microseconds").replace("+00:00", "Z")
