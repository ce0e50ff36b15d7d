"""Merge the attempts of a run in its run.json; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mldiagnostics.lifecycle.outcome import TERMINATING

MAX_ATTEMPTS = 100
"""Maximum number of earlier attempts in run.json."""

_OF_AN_ATTEMPT = ("attempt", "incarnation", "started", "ended", "phase", "reason", "message")


def continued(document: Mapping[str, Any], earlier: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `document` with the history of the `earlier` run.json.

    The creation time is that of the first attempt. An attempt without a final phase counts as lost, unless a forked
    child continues it.
    """
    if not earlier or earlier.get("runId") != document["runId"]:
        return {**document, "attempts": []}
    history = _attempts(earlier)
    same = (document["incarnation"], document.get("forkedFrom") or document["incarnation"])
    if earlier.get("incarnation") not in same:
        history.append(_past(earlier))
    created = earlier.get("created")
    created = created if isinstance(created, int | float) else document["created"]
    return {**document, "created": min(created, document["created"]), "attempts": history[-MAX_ATTEMPTS:]}


def merged(stored: Mapping[str, Any] | None, spooled: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return one run.json of two of the same run.

    The later attempt, with the earlier one in its history.

    Of the same attempt the document with the later heartbeat counts. Merging again changes nothing.
    """
    if not stored or stored.get("runId") != spooled.get("runId"):
        return stored or spooled
    if _moment(spooled) > _moment(stored):
        earlier, later = stored, spooled
    else:
        earlier, later = spooled, stored
    history = {_identity(attempt): attempt for attempt in (*_attempts(earlier), _past(earlier), *_attempts(later))}
    history.pop(_identity(later), None)
    created = [each["created"] for each in (earlier, later) if isinstance(each.get("created"), int | float)]
    attempts = sorted(history.values(), key=lambda attempt: _number(attempt.get("started")))
    return {**later, **({"created": min(created)} if created else {}), "attempts": attempts[-MAX_ATTEMPTS:]}


def _past(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry of a document in the history of a later one."""
    past = {key: document.get(key) for key in _OF_AN_ATTEMPT}
    if past["phase"] not in ["Completed", "Failed"]:
        reason = "Terminated" if past["reason"] == TERMINATING else "Lost"
        past |= {"phase": "Failed", "reason": reason, "ended": _heartbeat(document)}
    return past


def _attempts(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    attempts = document.get("attempts")
    return [item for item in attempts if isinstance(item, Mapping)] if isinstance(attempts, list) else []


def _heartbeat(document: Mapping[str, Any]) -> Any:
    heartbeat = document.get("heartbeat")
    return heartbeat.get("t") if isinstance(heartbeat, Mapping) else None


def _moment(document: Mapping[str, Any]) -> tuple[float, float]:
    return _number(document.get("started")), _number(_heartbeat(document))


def _identity(attempt: Mapping[str, Any]) -> str:
    return str(attempt.get("incarnation"))


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and value == value else 0.0  # noqa: PLR0124 - not NaN
