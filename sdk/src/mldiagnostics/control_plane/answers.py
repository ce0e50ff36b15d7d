"""Decide what the answers of a control plane mean, and when to report again; pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mldiagnostics.lifecycle.outcome import shorten

DEFAULT_INTERVAL_S = 10.0
LONGEST_PAUSE_S = 60.0
"""Longest back-off; a control plane that returns has all reports a minute later."""

_FIRST_PAUSE_S = 1.0
_SHORTEST_INTERVAL_S, _LONGEST_INTERVAL_S = 1.0, 300.0
_LARGEST = 2**53
_SHOWN = 80


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """Persisted reports and events of a process, and the time of the next one."""

    sequence: int
    events: int
    interval_s: float
    accepts_events: bool = True
    """Whether the control plane keeps more goodput events of the run."""


def read_answer(content: bytes) -> Acknowledgement:
    """Parse the answer to a report that was accepted. Raises `ValueError`."""
    try:
        answer = json.loads(content)
    except RecursionError:
        raise ValueError("JSON of too many levels") from None
    keys = ("persistedSequence", "persistedEvents", "intervalSeconds")
    values: list[Any] = [answer.get(key) for key in keys] if isinstance(answer, dict) else [None, None, None]
    sequence, events, interval = values
    interval = DEFAULT_INTERVAL_S if interval is None else interval
    if not (_is_count(sequence) and _is_count(events)) or type(interval) not in {int, float}:
        raise ValueError(f"without valid {', '.join(keys)}: {content[:_SHOWN]!r}")
    interval_s = max(_SHORTEST_INTERVAL_S, min(float(interval), _LONGEST_INTERVAL_S))
    return Acknowledgement(sequence, events, interval_s, answer.get("acceptsEvents") is not False)


def read_problem(content: bytes) -> str:
    """Return the message of a rejected report, on one line; empty without one."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return ""
    problem = answer.get("error") if isinstance(answer, dict) else None
    return shorten(problem) if isinstance(problem, str) else ""


def retry_after_s(header: str | None) -> float | None:
    """Return the seconds of a `Retry-After`; None without a valid number."""
    if header is None or not header.strip().isascii() or not header.strip().isdecimal():
        return None
    return min(float(header.strip()[:9]), _LONGEST_INTERVAL_S)


def back_off_s(failures: int, *, luck: float) -> float:
    """Return the pause after some failures in a row.

    Args:
        failures: Number of failures, from 1.
        luck: Number from 0 to 1 that spreads the processes of a run over half of the pause.
    """
    pause_s = min(LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(failures - 1, 10))
    return pause_s * (0.5 + 0.5 * luck)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < _LARGEST
