"""Payloads of the common shapes, taken in columns: a tenth of what it costs to look at each one closely; pure."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from mldiagnostics.goodput.payload import PLAIN_KEYS, STEP_KEYS, micros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.log.lines import Listener

__all__ = ["already_known", "take_shaped"]

_SHAPES: dict[tuple[str, ...], tuple[str, int]] = {
    **{("job_name", key): (key, int(code)) for key, code in PLAIN_KEYS.items()},
    **{("job_name", "step_count", key): (key, int(code)) for key, code in STEP_KEYS.items()},
}
"""Keys in the order in which recorders write them -> the key of the moment, and what happened then."""

_MAX_STEP = 2**31 - 1


def take_shaped(payloads: Sequence[Any], job_name: str | None, listener: Listener) -> list[Any]:
    """Feed the payloads of one job, or of all, that have a common shape; return the others."""
    times, codes, args = array("q"), bytearray(), array("i")
    others = []
    for payload in payloads:
        key, code = _SHAPES.get(tuple(payload), ("", 0)) if type(payload) is dict else ("", 0)
        t = micros(payload[key]) if key else None
        step = payload.get("step_count", 0) if key else None
        if t is None or type(step) is not int or not 0 <= step <= _MAX_STEP:
            others.append(payload)
        elif job_name is None or payload["job_name"] == job_name:
            times.append(t)
            codes.append(code)
            args.append(step)
    if times:
        listener.extend(times, bytes(codes), args)
    return others


def already_known(before: Sequence[Any], now: Sequence[Any]) -> int:
    """Return how many payloads at the begin of an answer are those at the end of the answer before."""
    if not before or not now:
        return 0
    try:
        tail = before[before.index(now[0]) :]
        return len(tail) if now[: len(tail)] == tail else 0
    except Exception:  # noqa: BLE001 - it is not there, or payloads of somebody else's cannot be compared
        return 0
