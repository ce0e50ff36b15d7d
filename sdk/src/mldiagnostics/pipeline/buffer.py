"""The bounded buffer in which new records of all threads wait for the drain.

It never blocks.

A process has one buffer from import on: records made before a run, or between two runs, belong to the next run. The
drain takes entries from the left.
"""

from __future__ import annotations

import atexit
import os
import sys
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
    from mldiagnostics.pipeline.records import Kind, Record

CAPACITY = 131_072
"""Maximum number of waiting records; each takes about 200 bytes."""

RESERVE = 4096
"""Additional room for records other than metrics: the outcome of a run matters more than its last loss."""

WAIT_CAPACITY = 16_384
"""Capacity where threads wait for room: small, so that `close()` can write the records in time."""

CAPACITY_BYTES = 32 * 1024 * 1024
"""Total bytes of all values beyond single numbers."""

MAX_PAYLOAD_BYTES = 64 * 1024
"""Maximum bytes of a record other than a metric: configurations are larger than values."""

LOCKED_S = 0.5
"""Longest wait for the buffer's lock, usually microseconds.

A signal handler may interrupt the thread that holds it, and wait for the thread that needs it, such as the heartbeat's.
"""

PayloadMaker: TypeAlias = "Callable[[float, int | None, str], dict[str, object]]"
"""Makes a payload in the drain, from time, step and an id that is unique in the run."""

Entry: TypeAlias = (
    "tuple[float, Kind, Any, Any, Any, Mapping[str, str] | None, dict[str, object] | PayloadMaker | None, int]"
)
"""Time, kind, name, kept value, step, labels, payload or its maker, and the bytes to give back."""


class FlushToken:
    """A position between records, acknowledged by every sink.

    A sink acknowledges it when the records before it are delivered.
    """

    def __init__(self, *, deadline: float, closing: bool) -> None:
        self.deadline = deadline
        """End of all attempts, by `time.monotonic`."""
        self.closing = closing
        self.abandoned = False
        """Set when the caller no longer waits; the token is ignored then."""
        self._acknowledgements: SimpleQueue[bool] = SimpleQueue()

    def acknowledge(self, *, delivered: bool) -> None:
        """Acknowledge for one sink whether the records before the token are delivered."""
        self._acknowledgements.put(delivered)

    def wait(self, expected: int) -> list[bool]:
        """Return the acknowledgements that arrive before the deadline."""
        received: list[bool] = []
        with suppress(Empty):
            while len(received) < expected:
                received.append(self._acknowledgements.get(timeout=max(0.0, self.deadline - time.monotonic())))
        return received


class ReadyRecords:
    """Records that the drain only passes on: their values are settled."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records


class Buffer:
    """Takes entries from any thread.

    New entries beyond the capacity are dropped and counted, or wait.

    The fast path is `append`, allowed for an entry without charge while `len(entries) < capacity`. Concurrent threads
    may exceed the capacity by one entry each.
    """

    def __init__(self, *, capacity: int = CAPACITY, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.entries: deque[Entry | ReadyRecords | FlushToken] = deque()
        self.append = self.entries.append
        self.capacity = capacity
        """Maximum number of metrics; 0 while the buffer is suspended."""
        self.drops = Drops()
        self.clock = float("nan")
        """Seconds by which the wall clock was ahead of a steady one at the last goodput event; NaN before it."""
        self.on_full: Callable[[], object] = lambda: None
        """Called with each record that finds no room."""
        self._whole_capacity = capacity
        self._limit = capacity
        self._on_first_record: Callable[[], None] | None = None
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
        """Add a record; an invalid one is dropped and counted.

        Never raises and never waits.
        """
        try:
            moment = time.time() if t is None else _unix_time(t)
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
        except Exception as error:  # noqa: BLE001 - a foreign object may raise anything when it is inspected
            self.drops.count("bad-value", detail=f"{shown(name)}: {type(error).__name__}: {shown(error)}")

    def put(self, entry: Entry) -> None:
        """Add an entry, after waiting for room with backpressure, or drop and count it."""
        if self._take(entry):
            return
        self.on_full()
        backpressure = self._backpressure
        if backpressure is None or not backpressure.wait(self._take, entry):
            self.drops.count("buffer-full", detail=shown(entry[2]))

    def _take(self, entry: Entry, extra: int = 0) -> bool:
        """Add an entry if there is room, which is larger by `extra` entries."""
        is_locked = self._lock.acquire(timeout=LOCKED_S)
        try:
            return self._take_now(entry, extra)
        finally:
            if is_locked:
                self._lock.release()

    def _take_now(self, entry: Entry, extra: int) -> bool:
        charge = entry[-1]
        if self._on_first_record is not None:
            self._on_first_record()
        with suppress(IndexError):  # a signal handler may take the last one between test and popleft
            while self._given_back:
                freed = self._given_back.popleft()
                self._charged -= freed
        capacity = (self.capacity if entry[1] == "metric" else self.capacity + RESERVE) + extra
        if len(self.entries) >= capacity or self._charged + charge > self._capacity_bytes:
            return False
        self._charged += charge
        self.append(entry)
        return True

    def give_back(self, charge: int) -> None:
        """Release the bytes of an entry that has left the buffer.

        Without the lock: a signal handler may wait for the drain while the interrupted thread holds it.
        """
        if charge:
            self._given_back.append(charge)

    def suspend(self, on_first_record: Callable[[], None]) -> None:
        """Call `on_first_record` with the next record, as in a forked child.

        The callback must `resume` the buffer.
        """
        self._on_first_record = on_first_record
        self._set_capacity()

    def enable_waiting(self, backpressure: Backpressure) -> None:
        """Let threads wait for room from now on."""
        self._backpressure = backpressure
        self._set_capacity()

    def disable_waiting(self) -> None:
        """Drop records beyond the capacity from now on."""
        if self._backpressure is not None:
            self._backpressure.stop()
            self._backpressure = None
            self._set_capacity()

    def resume(self) -> None:
        """Accept records again."""
        self._on_first_record = None
        self._set_capacity()

    def limit(self, capacity: int | None) -> None:
        """Have room for at most `capacity` metrics, or for all again with None."""
        limit = self._whole_capacity if capacity is None else min(self._whole_capacity, capacity)
        if limit != self._limit:
            self._limit = limit
            self._set_capacity()

    def _set_capacity(self) -> None:
        whole = self._limit if self._backpressure is None else min(self._limit, WAIT_CAPACITY)
        self.capacity = whole if self._on_first_record is None else 0

    def reset_in_child(self) -> None:
        """Empty the buffer in a forked child.

        The parent writes its records, and its threads may hold the lock.

        The entries stay referenced: to free an array here could wait for a thread that no longer exists.
        """
        self._lock = threading.RLock()
        self._inherited.append(list(self.entries))
        self.entries.clear()
        self._given_back.clear()
        self._charged = 0
        self._backpressure, self._limit = None, self._whole_capacity
        self.on_full = lambda: None
        self._set_capacity()
        self.drops.reset()


def _unix_time(t: float | datetime) -> float:
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
        raise Unrecordable("bad-value", "a payload that is not a dict")
    return kept, size


PROCESS = Buffer()
"""The process's buffer."""


_leftovers_lock = threading.RLock()
"""A second caller waits until the first has written its warning: it ends the process."""


def _report_leftovers() -> None:
    with _leftovers_lock:
        _warn_of_leftovers()


def _warn_of_leftovers() -> None:
    if PROCESS.entries:
        from mldiagnostics.diagnostics import warn_once  # noqa: PLC0415 - an import alone needs no logging
        from mldiagnostics.text.counts import counted  # noqa: PLC0415 - the same

        number = len(PROCESS.entries) + PROCESS.drops.totals().get("buffer-full", 0)
        advice = "start one with machinelearning_run(name=…) before recording"
        if (child := child_of_multiprocessing()) is not None:
            advice = f"start one in {child} too, with the run_workload_id of the main program"
        warn_once("no-run", f"{counted(number, 'record', 'do')} not belong to a run; {advice}")


def child_of_multiprocessing() -> str | None:
    """Return this process's name if `multiprocessing` started it, else None.

    Such a process ends without exit handlers.
    """
    process = sys.modules.get("multiprocessing.process")
    return process.current_process().name if process is not None and process.parent_process() is not None else None


def _watch_end() -> None:
    """Accept the first record of a process, whose end reports records without a run."""
    PROCESS.resume()
    if child_of_multiprocessing() is not None:
        from mldiagnostics.pipeline import forked_exit  # noqa: PLC0415 - only in children that record

        sys.modules["multiprocessing.util"].Finalize(None, _report_leftovers, exitpriority=-1)
        forked_exit.guard(_report_leftovers)


def _reset_in_child() -> None:
    global _leftovers_lock  # noqa: PLW0603 - a thread of the parent may hold the old lock
    _leftovers_lock = threading.RLock()
    PROCESS.reset_in_child()
    PROCESS.suspend(_watch_end)


PROCESS.suspend(_watch_end)  # the import cannot know whether multiprocessing will call the process its child
atexit.register(_report_leftovers)  # runs after the pipelines, which are registered later, have taken theirs
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_in_child)
