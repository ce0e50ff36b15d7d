"""Hold back records whose values are not ready.

The drain does not wait for a device.
"""

from __future__ import annotations

from collections import deque
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.buffer import CAPACITY_BYTES, FlushToken
from mldiagnostics.pipeline.deferred_value import is_ready
from mldiagnostics.pipeline.drops import shown

if TYPE_CHECKING:
    from mldiagnostics.pipeline.buffer import Buffer, Entry
    from mldiagnostics.pipeline.drops import Reason

HELD_CAPACITY = 16_384
"""Maximum number of held entries; the buffer has additional ones."""

HELD_BYTES = CAPACITY_BYTES // 4
"""Maximum bytes of their values: the buffer has room for other records even if a device never responds."""

ORDER_S = 60.0
"""Seconds after which metrics of other names no longer wait for a value."""

_LEFT_S = 1.0
"""Seconds before the deadline of a closing token that are left for the sinks."""


class UnreadyEntries:
    """Entries whose values are not ready, and those that wait behind them.

    A token waits behind all. A metric waits behind an earlier one of the same name, and with a step behind any earlier
    one: readers expect the points of a curve in order, and W&B rejects rows of earlier steps. Other records do not.

    Each pass of the drain takes all entries out, from the left, and puts those back that still wait.
    """

    def __init__(self, buffer: Buffer) -> None:
        self.entries: deque[Entry | FlushToken] = deque()
        self.waiting = 0
        """Number of entries that were put back in this pass."""
        self.has_token = False
        """Whether a caller waits for the entries."""
        self._buffer = buffer
        self._bytes = 0
        self._names: set[str] = set()
        self._is_ordered = True
        self._first: Entry | None = None
        self._first_since = 0.0
        self._give_up_at = inf

    @property
    def is_closing(self) -> bool:
        """Whether a closing token waits: no later entry may be processed."""
        return self._give_up_at < inf

    def restart(self) -> int:
        """Begin a pass over the entries; return their number."""
        self.waiting, self.has_token, self._bytes = 0, False, 0
        self._names.clear()
        if not self.entries:
            self._first = None
        return len(self.entries)

    def hold(self, entry: Entry) -> bool:
        """Put an entry back if it must wait; return False if it can be read now.

        An entry beyond the capacity, or one that is not ready when the time to close is over, is dropped and counted.
        """
        _, kind, name, kept, step, _, _, charge = entry
        is_metric = kind == "metric"
        if is_ready(kept) and is_ready(step):
            if not (is_metric and self._is_behind(name, step)):
                return False
        elif monotonic() >= self._give_up_at:
            self._drop("unwritten", entry)
            return True
        if self.waiting >= HELD_CAPACITY or self._bytes + charge > HELD_BYTES:
            self._drop("buffer-full", entry)
            return True
        if is_metric:
            self._note_metric(entry)
        self._bytes += charge
        self._put_back(entry)
        return True

    def hold_token(self, token: FlushToken) -> bool:
        """Put a token back if entries wait before it; return whether it waits."""
        if not self.waiting:
            return False
        self.has_token = True
        if token.closing and not self.is_closing:
            now = monotonic()
            left_s = max(0.0, token.deadline - now)
            self._give_up_at = now + max(left_s - _LEFT_S, left_s / 2)
        self._put_back(token)
        return True

    def _put_back(self, entry: Entry | FlushToken) -> None:
        self.waiting += 1
        self.entries.append(entry)

    def _drop(self, reason: Reason, entry: Entry) -> None:
        self._buffer.drops.count(reason, detail=f"{shown(entry[2])}: its value is not ready")
        self._buffer.give_back(entry[-1])

    def _is_behind(self, name: object, step: object) -> bool:
        return bool(self._names) and ((self._is_ordered and step is not None) or _plain(name) in self._names)

    def _note_metric(self, entry: Entry) -> None:
        """Let later metrics wait behind this one."""
        if not self._names:
            now = monotonic()
            if entry is not self._first:
                self._first, self._first_since = entry, now
            self._is_ordered = now < self._first_since + ORDER_S
        self._names.add(_plain(entry[2]))


def _plain(name: object) -> str:
    """Return a name as a string; members of a string enum have another hash."""
    return str.__str__(name) if issubclass(type(name), str) else ""
