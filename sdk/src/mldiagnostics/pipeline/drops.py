"""Records that were not kept: why, how many, and what to do about it."""

from __future__ import annotations

import threading
from typing import Literal, NamedTuple, TypeAlias

Reason: TypeAlias = Literal[
    "bad-call", "bad-name", "bad-time", "bad-value", "buffer-full", "deleted-array", "queue-full", "refused",
    "spool-full",
    "too-large", "traced-value", "unwritten",
]  # fmt: skip
"""Why a record was dropped; the first column of what `Drops` tells."""

ADVICE: dict[Reason, str] = {
    "bad-call": "pass metrics.record a name and a value, and metrics.record_metrics a list of dicts with "
    "'metric_name' and 'value'",
    "bad-name": "a name is a text that is not empty, or a MetricType",
    "bad-time": "a timestamp is a number of seconds since 1970 or a datetime",
    "bad-value": "a value is a number, a 0-d or 1-d array, a list of numbers, a text or a dict",
    "buffer-full": "records come faster than they can be written: record less often, or start with on_full='wait'",
    "deleted-array": "the array was donated or deleted before it was read: record a copy, or int(state.step)",
    "queue-full": "the sink is slower than the records or does not answer: see what it says, or choose another",
    "refused": "the sink will never take them: see what it says",
    "spool-full": "mend the storage, or upload what waits: python -m mldiagnostics.upload",
    "too-large": "a value may have 4 KiB with its labels: store larger things as files",
    "traced-value": "inside jit there is no value yet: return it, or record it in jax.debug.callback",
    "unwritten": "the time for closing was over before the sink had taken them",
}


class DroppedRecords(NamedTuple):
    """`number` records dropped by `sink` ("" = before any sink), with the last one's story."""

    sink: str
    reason: Reason
    number: int
    detail: str

    def sentence(self) -> str:
        """Return what happened and what to do, for people."""
        place = f"sink {self.sink} " if self.sink else ""
        story = f" ({self.detail})" if self.detail else ""
        return f"{place}dropped {self.number} records, {self.reason}{story}: {ADVICE[self.reason]}"


class Drops:
    """Counts what is dropped, from any thread, also in a signal's handler."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._totals: dict[tuple[str, Reason], int] = {}
        self._fresh: dict[tuple[str, Reason], DroppedRecords] = {}

    def count(self, reason: Reason, number: int = 1, *, sink: str = "", detail: str = "") -> None:
        """Count `number` dropped records; `detail` says which and why in words of this one case."""
        key = sink, reason
        with self._lock:
            self._totals[key] = self._totals.get(key, 0) + number
            fresh = self._fresh.get(key)
            self._fresh[key] = DroppedRecords(sink, reason, number + (fresh.number if fresh else 0), detail[:200])

    def totals(self) -> dict[str, int]:
        """Return how many were dropped, by reason, or `<sink>: <reason>` where only one sink lost them."""
        with self._lock:
            return {f"{sink}: {reason}" if sink else reason: count for (sink, reason), count in self._totals.items()}

    def take_news(self) -> list[DroppedRecords]:
        """Return what was dropped since the last call."""
        if not self._fresh:
            return []
        with self._lock:
            news, self._fresh = list(self._fresh.values()), {}
            return news

    def renew(self) -> None:
        """Begin anew in a forked child, where another thread may have held the lock."""
        self.__init__()  # type: ignore[misc]


def shown(thing: object) -> str:
    """Return a short text for anything, even for an object that cannot be shown."""
    try:
        return str(thing)[:120]
    except Exception:  # noqa: BLE001 - a foreign object may raise anything
        return type(thing).__name__
