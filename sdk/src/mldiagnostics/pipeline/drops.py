"""Count dropped records by reason, with advice for each reason."""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import Literal, NamedTuple, TypeAlias

from mldiagnostics.text.counts import counted

Reason: TypeAlias = Literal[
    "bad-call", "bad-name", "bad-time", "bad-value", "buffer-full", "deleted-array", "queue-full", "refused",
    "spool-full",
    "too-large", "traced-value", "unwritten",
]  # fmt: skip
"""Reasons for which records are dropped."""

ADVICE: dict[Reason, str] = {
    "bad-call": "pass metrics.record a name and a value, and metrics.record_metrics a list of dicts with "
    "'metric_name' and 'value'",
    "bad-name": "a name must be a string that is not empty, or a MetricType",
    "bad-time": "a timestamp must be a number of seconds since 1970 or a datetime",
    "bad-value": "a value must be a number, a 0-d or 1-d array, a list of numbers, a string or a dict",
    "buffer-full": "records are made faster than they can be written; record less often, or start with on_full='wait'",
    "deleted-array": "the array was donated or deleted before it was read; record a copy, or int(state.step)",
    "queue-full": "the sink is slower than the records or does not respond; see its warnings, or choose another sink",
    "refused": "the sink rejects them; see its warnings",
    "spool-full": "repair the storage, or upload the waiting files with python -m mldiagnostics.upload",
    "too-large": "a value with its labels may have 4 KiB; store larger values as files",
    "traced-value": "a value inside jit is not known yet; return it, or record it in jax.debug.callback",
    "unwritten": "close() reached its time limit before their values were ready or the sink had taken them",
}


class DroppedRecords(NamedTuple):
    """Number of dropped records, with details of the last one.

    `sink` is empty for records that were dropped before any sink.
    """

    sink: str
    reason: Reason
    number: int
    detail: str

    @property
    def subject(self) -> str:
        """Subject of the warnings about such drops."""
        return f"dropped {self.sink} {self.reason}" if self.sink else f"dropped {self.reason}"

    def sentence(self) -> str:
        """Return a message with the number, the reason and advice."""
        prefix = f"sink {self.sink} " if self.sink else ""
        detail = f" ({self.detail})" if self.detail else ""
        return f"{prefix}dropped {counted(self.number, 'record')}, {self.reason}{detail}: {ADVICE[self.reason]}"


class Drops:
    """Counts dropped records, from any thread and in signal handlers.

    A handler may count in the thread that it interrupts, which happens only at calls. So no call stands between reading
    and writing a number.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._totals: defaultdict[tuple[str, Reason], int] = defaultdict(int)
        self._fresh: defaultdict[tuple[str, Reason], int] = defaultdict(int)
        self._details: dict[tuple[str, Reason], str] = {}

    def count(self, reason: Reason, number: int = 1, *, sink: str = "", detail: str = "") -> None:
        """Count `number` dropped records; `detail` describes this case."""
        key = sink, reason
        with self._lock:
            self._details[key] = detail[:200]
            self._totals[key] += number
            self._fresh[key] += number

    def totals(self) -> dict[str, int]:
        """Return the numbers by reason, or `<sink>: <reason>` for one sink."""
        with self._lock:
            totals = self._totals.copy()
        return {f"{sink}: {reason}" if sink else reason: count for (sink, reason), count in totals.items()}

    def take_new(self) -> list[DroppedRecords]:
        """Return the drops since the last call."""
        if not self._fresh:
            return []
        none: defaultdict[tuple[str, Reason], int] = defaultdict(int)
        with self._lock:
            new, self._fresh = self._fresh, none
            return [DroppedRecords(*key, number, self._details[key]) for key, number in new.items()]

    def reset(self) -> None:
        """Reset counts and lock in a forked child: another thread may hold it."""
        self.__init__()  # type: ignore[misc]


def shown(thing: object) -> str:
    """Return a short string for any object, even one whose `__str__` fails."""
    try:
        return str(thing)[:120]
    except Exception:  # noqa: BLE001 - a foreign object may raise anything
        return type(thing).__name__
