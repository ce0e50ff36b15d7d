"""Where records wait, from the moment they are made: bounded, never blocking, the same for all threads.

There is one buffer in a process, from import on: what is recorded before a run exists waits for it, and what comes
while one run ends and another begins is the other's. Its drain takes entries from the left.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import datetime
from math import isfinite
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.pipeline.drops import Drops, shown
from mldiagnostics.pipeline.values import MAX_VALUE_BYTES, Unrecordable, keep, keep_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics.pipeline.backpressure import Backpressure
    from mldiagnostics.pipeline.records import Kind

CAPACITY = 131_072
"""How many records wait at most; each takes about 200 bytes."""

RESERVE = 4096
"""How many more there may be of what is not a metric: how a run ends is worth more than its last loss."""

WAIT_CAPACITY = 16_384
"""The same where threads wait for room: few, so that the end of the run can write them in its time."""

CAPACITY_BYTES = 32 * 1024 * 1024
"""How much the values that are more than a number may hold together."""

MAX_PAYLOAD_BYTES = 64 * 1024
"""The most that a record other than a metric may hold: configurations are larger than values."""

Telling: TypeAlias = "Callable[[float, int | None, str], dict[str, object]]"
"""Makes a payload in the drain, of the moment, the step, and an id that no other record of the run has."""

Entry: TypeAlias = (
    "tuple[float, Kind, Any, Any, Any, Mapping[str, str] | None, dict[str, object] | Telling | None, int]"
)
"""When, kind, name, kept value, step, labels, payload or what makes it, and the bytes to give back."""


class FlushToken:
    """A place between records: who put it there learns when all before it has been dealt with."""

    def __init__(self, *, deadline: float, closing: bool) -> None:
        self.deadline = deadline
        """Until when to try, by `time.monotonic`."""
        self.closing = closing
        self.abandoned = False
        """Set when nobody waits any more: whoever meets it passes over it."""
        self._answers: SimpleQueue[bool] = SimpleQueue()

    def answer(self, *, delivered: bool) -> None:
        """Say, for one sink, whether everything before the marker is where it belongs."""
        self._answers.put(delivered)

    def answers(self, expected: int) -> list[bool]:
        """Return the answers that come before the deadline."""
        found: list[bool] = []
        with suppress(Empty):
            while len(found) < expected:
                found.append(self._answers.get(timeout=max(0.0, self.deadline - time.monotonic())))
        return found


class Buffer:
    """Takes entries from any thread; what does not fit is dropped, the newest first, and counted, or waited for.

    The fast way in is `append`, allowed for an entry without charge as long as `len(entries) < capacity`. Threads
    that do so at one and the same time may pass the bound by one entry each.
    """

    def __init__(self, *, capacity: int = CAPACITY, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.entries: deque[Entry | FlushToken] = deque()
        self.append = self.entries.append
        self.capacity = capacity
        """How many metrics are taken; 0 while it dozes."""
        self.drops = Drops()
        self.clock = float("nan")
        """By how many seconds the wall clock was ahead of a steady one at the last event of goodput; NaN before it."""
        self._whole_capacity = capacity
        self._awaken: Callable[[], None] | None = None
        self._backpressure: Backpressure | None = None
        self._capacity_bytes = capacity_bytes
        self._charged = 0
        self._given_back: deque[int] = deque()
        self._lock = threading.RLock()
        self._inherited: list[object] = []

    def add(
        self,
        kind: Kind,
        name: Any,
        *,
        value: Any = None,
        step: Any = None,
        labels: Mapping[Any, Any] | None = None,
        t: float | datetime | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Keep a record of anything; what cannot be kept is counted. Never raises and never waits."""
        try:
            moment = time.time() if t is None else _moment(t)
            kept, size = (None, 0) if value is None else keep(value)
            kept_step = step if step is None or type(step) is int else keep(step)[0]
            kept_labels, label_size = _keep_labels(labels) if labels else (None, 0)
            content, content_size = (None, 0) if payload is None else _keep_payload(payload)
            if kind == "metric" and size + label_size > MAX_VALUE_BYTES:
                raise Unrecordable("too-large", f"{size + label_size} bytes with labels")  # noqa: TRY301 - one way out
            charge = size + label_size + content_size
            self.put((moment, kind, name, kept, kept_step, kept_labels, content, charge))
        except Unrecordable as reason:
            self.drops.count(reason.reason, detail=f"{shown(name)}: {reason}")
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when it is looked at
            self.drops.count("bad-value", detail=f"{shown(name)}: {type(error).__name__}: {shown(error)}")

    def put(self, entry: Entry) -> None:
        """Take an entry as it is, after waiting for room where that is wanted, or drop and count it."""
        if self._take(entry):
            return
        backpressure = self._backpressure
        if backpressure is None or not backpressure.wait(lambda: self._take(entry)):
            self.drops.count("buffer-full", detail=shown(entry[2]))

    def _take(self, entry: Entry) -> bool:
        charge = entry[-1]
        with self._lock:
            if self._awaken is not None:
                self._awaken()
            with suppress(IndexError):  # a signal's handler may take the last one between look and grasp
                while self._given_back:
                    self._charged -= self._given_back.popleft()
            capacity = self.capacity if entry[1] == "metric" else self.capacity + RESERVE
            if len(self.entries) >= capacity or self._charged + charge > self._capacity_bytes:
                return False
            self._charged += charge
            self.append(entry)
            return True

    def give_back(self, charge: int) -> None:
        """Say that an entry of this charge has left.

        Without the lock: a signal's handler may wait for the drain while the thread that it interrupts holds that.
        """
        if charge:
            self._given_back.append(charge)

    def doze(self, awaken: Callable[[], None]) -> None:
        """Have `awaken` called with the next record, to `rouse` it, as in a forked child that may never have one."""
        self.capacity, self._awaken = 0, awaken

    def wait_by(self, backpressure: Backpressure) -> None:
        """Have threads wait for room from now on."""
        self._backpressure = backpressure
        self.capacity = min(self._whole_capacity, WAIT_CAPACITY)

    def wait_no_more(self) -> None:
        """Drop what does not fit from now on, as at first."""
        if self._backpressure is not None:
            self._backpressure.end()
            self._backpressure, self.capacity = None, self._whole_capacity

    def rouse(self) -> None:
        """Take records again without asking anybody."""
        self.capacity, self._awaken = self._whole_capacity, None

    def begin_again(self) -> None:
        """Begin anew in a forked child: what waits is the parent's to write, and its threads may hold the lock.

        The entries are kept, unused: to let go of an array here could wait for a thread that no longer exists.
        """
        self._lock = threading.RLock()
        self._inherited.append(list(self.entries))
        self.entries.clear()
        self._given_back.clear()
        self._charged = 0
        self._backpressure, self.capacity = None, self._whole_capacity
        self.drops.renew()


def _moment(t: float | datetime) -> float:
    try:
        moment = t.timestamp() if isinstance(t, datetime) else float(t)
    except (TypeError, ValueError, OverflowError, OSError) as error:
        raise Unrecordable("bad-time", f"timestamp={shown(t)!r}") from error
    if not isfinite(moment):
        raise Unrecordable("bad-time", f"timestamp={moment}")
    return moment


def _keep_labels(labels: Mapping[Any, Any]) -> tuple[dict[str, str], int]:
    kept = {keep_text(str(key)): keep_text(str(value)) for key, value in labels.items()}
    return kept, sum(map(len, kept)) + sum(map(len, kept.values()))


def _keep_payload(payload: Mapping[str, Any]) -> tuple[dict[str, object], int]:
    kept, size = keep(payload, max_bytes=MAX_PAYLOAD_BYTES)
    if not isinstance(kept, dict):
        raise Unrecordable("bad-value", "a payload is a dict")
    return kept, size


PROCESS = Buffer()
"""The process's buffer."""


def _tell_of_leftovers() -> None:
    if PROCESS.entries:
        from mldiagnostics.diagnostics import warn_once  # noqa: PLC0415 - who only imports needs no logging

        number = len(PROCESS.entries)
        warn_once(
            "no-run", f"{number} records belong to no run: machinelearning_run(name=…) begins one, close() ends it"
        )


atexit.register(_tell_of_leftovers)  # after the recordings, which come later, have taken what is theirs
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.begin_again)
