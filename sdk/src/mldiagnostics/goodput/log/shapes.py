"""Fast conversion of payloads that have a common shape; pure."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.events.conversion import PLAIN_KEYS, STEP_KEYS, micros
from mldiagnostics.goodput.events.payloads import MAX_STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.events.listener import EventListener


_SHAPES: dict[tuple[str, ...], tuple[str, int]] = {
    **{("job_name", key): (key, int(code)) for key, code in PLAIN_KEYS.items()},
    **{("job_name", "step_count", key): (key, int(code)) for key, code in STEP_KEYS.items()},
}
"""The key of the moment and the event code, by the keys in the order of recorders."""


_REMEMBERED = 2**16
"""Payloads of ten minutes at a hundred a second."""

_COMPARED = 2**10


def take_shaped(payloads: Sequence[Any], job_name: str | None, listener: EventListener) -> list[Any]:
    """Add the payloads of a job that have a common shape; return the others."""
    times, codes, args = array("q"), bytearray(), array("i")
    others = []
    for payload in payloads:
        key, code = _SHAPES.get(tuple(payload), ("", 0)) if type(payload) is dict else ("", 0)
        t = micros(payload[key]) if key else None
        step = payload.get("step_count", 0) if key else None
        if t is None or type(step) is not int or not 0 <= step <= MAX_STEP:
            others.append(payload)
        elif job_name is None or payload["job_name"] == job_name:
            times.append(t)
            codes.append(code)
            args.append(step)
    if times:
        listener.extend(times, bytes(codes), args)
    return others


def already_known(before: Sequence[Any], now: Sequence[Any]) -> int:
    """Return how many of the first payloads repeat the end of the previous ones."""
    if not before or not now:
        return 0
    try:
        tail = before[before.index(now[0]) :]
        return len(tail) if now[: len(tail)] == tail else 0
    except Exception:  # noqa: BLE001 - missing, or foreign payloads that cannot be compared
        return 0


class RepeatFilter:
    """Removes payloads that the previous result had.

    Results of a service overlap; results of a plain list start with all earlier payloads.
    """

    def __init__(self) -> None:
        self._first: list[Any] = []
        self._last: list[Any] = []
        self._length = 0

    def new_in(self, payloads: list[Any]) -> list[Any]:
        """Return the payloads that the previous result did not have, or more."""
        known = self._length if self._has_grown(payloads) else already_known(self._last, payloads)
        self._first, self._last, self._length = payloads[:1], payloads[-_REMEMBERED:], len(payloads)
        return payloads[known:]

    def _has_grown(self, payloads: list[Any]) -> bool:
        length = self._length
        if not length or len(payloads) < length:
            return False
        try:
            last = payloads[max(0, length - _COMPARED) : length]
            return payloads[:1] == self._first and last == self._last[-_COMPARED:]
        except Exception:  # noqa: BLE001 - as above
            return False
