"""The thread that empties the buffer.

It reads values, makes records and passes them to the sink workers.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import lru_cache
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.metric_types import NO_UNIT, UNITS
from mldiagnostics.pipeline.backpressure import Backpressure
from mldiagnostics.pipeline.buffer import FlushToken, ReadyRecords
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.overload import Overload
from mldiagnostics.pipeline.records import NO_LABELS, Record
from mldiagnostics.pipeline.sink_backpressure import SinkBackpressure
from mldiagnostics.pipeline.sink_worker import drop_record
from mldiagnostics.pipeline.values import LARGEST_WHOLE, Unrecordable, keep_text, settle
from mldiagnostics.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.buffer import Buffer, Entry, PayloadMaker
    from mldiagnostics.pipeline.records import Value
    from mldiagnostics.pipeline.sink_worker import SinkWorker

PERIOD_S = 0.5
"""Seconds between passes over the buffer; a record is in its file within a second."""

_SLICE = 64
_SKIPPED = 1024
_tuple = tuple.__new__
_PIECE = 8  # single numbers that are read between two looks at the time


class Drain:
    """Empties a buffer into sink workers, in order, up to a closing token.

    Entries behind that token stay in the buffer, for its next drain.
    """

    def __init__(
        self,
        buffer: Buffer,
        origin: Origin,
        workers: Sequence[SinkWorker],
        *,
        observers: Sequence[SinkWorker] = (),
        waits: bool = False,
    ) -> None:
        self._buffer = buffer
        self._origin = origin
        self._rank, self._attempt = origin.rank, origin.attempt
        self._workers = (*workers, *observers)
        self._overload = Overload(buffer, workers)
        self._wake: SimpleQueue[None] = SimpleQueue()  # safe in a signal handler, unlike an Event
        self._closed = False
        self._payloads = 0
        self.last_step: int | None = None
        """Step of the last metric that has one."""
        self._yield_gil = GilYielder()
        self._backpressure = Backpressure(self.wake) if waits else None
        self._sink_backpressure = SinkBackpressure()
        self.thread = threading.Thread(target=self._serve, name="mldiagnostics-drain", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()
        self._buffer.on_full = self._note_full
        if self._backpressure is not None:
            self._buffer.enable_waiting(self._backpressure)

    def wake(self) -> None:
        """Empty the buffer now instead of at the end of the period."""
        self._wake.put(None)

    def stop(self) -> None:
        """Stop after the current entries; another drain may take over the buffer."""
        self._closed = True
        self._buffer.limit(None)
        if self._backpressure is not None:
            self._buffer.disable_waiting()

    def _note_full(self) -> None:
        self._overload.note_full()
        if self._wake.empty():
            self._wake.put(None)

    def _serve(self) -> None:
        while not self._closed:
            with suppress(Empty):
                self._wake.get(timeout=PERIOD_S)
            try:
                self._pass()
            except BaseException as error:  # noqa: BLE001 - a foreign object may raise anything
                warn_once("drain", f"a pass over the buffer failed and some records are lost: {error!r}")

    def _pass(self) -> None:
        """Process the entries of this moment.

        Later ones wait for the next pass, so that a pass ends.
        """
        self._yield_gil.restart()
        self._overload.begin_pass()
        left = len(self._buffer.entries)
        while left > 0 and not self._closed:
            if self._backpressure is None and self._overload.is_late():
                left -= self._skip_metrics(min(left, _SKIPPED))
                continue
            left -= self._take_slice(min(left, _SLICE))
            if self._backpressure is not None:
                self._backpressure.note_progress()
        self._report_drops()

    def _skip_metrics(self, count: int) -> int:
        """Drop the metrics among the next entries, and process the others.

        Return the number of entries.
        """
        entries = self._buffer.entries
        taken = [entries.popleft() for _ in range(count)]
        others = [entry for entry in taken if not isinstance(entry, tuple) or entry[1] != "metric"]
        left = len(others)
        self._buffer.drops.count("buffer-full", count - left)
        self._buffer.give_back(sum(entry[-1] for entry in taken if isinstance(entry, tuple) and entry[1] == "metric"))
        entries.extendleft(reversed(others))
        while left > 0 and not self._closed:
            left -= self._take_slice(left)
        self._yield_gil()
        return count

    def _take_slice(self, count: int) -> int:
        """Pass the next records to the workers, up to a token or ready records.

        Return the number of entries.
        """
        records: list[Record] = []
        size = 0
        for taken in range(1, count + 1):
            entry = self._buffer.entries.popleft()
            if not isinstance(entry, tuple):
                self._hand_over(records, size)
                self._pass_on(entry)
                return taken
            record = self._record(entry)
            if record is not None:
                records.append(record)
            if charge := entry[-1]:
                size += charge if record is not None else 0
                self._buffer.give_back(charge)
            if type(entry[3]) is not float or not taken % _PIECE:
                self._yield_gil()
        self._hand_over(records, size)
        return count

    def _pass_on(self, entry: FlushToken | ReadyRecords) -> None:
        if isinstance(entry, ReadyRecords):
            self._hand_over(entry.records, 0)
        elif not entry.abandoned:
            self._forward(entry)

    def _hand_over(self, records: list[Record], size: int) -> None:
        if records:
            steps = (each.step for each in reversed(records) if each.kind == "metric" and each.step is not None)
            self.last_step = next(steps, self.last_step)
            for worker in self._workers:
                if self._backpressure is not None:
                    self._sink_backpressure.wait(worker, lambda: self._closed)
                worker.offer(records, size)

    def _forward(self, token: FlushToken) -> None:
        self._report_drops()
        self._closed = token.closing
        for worker in self._workers:
            worker.put_token(token)

    def _record(self, entry: Entry) -> Record | None:
        """Return the record of an entry.

        None, counted as dropped, if its value cannot be read.
        """
        t, kind, name, kept, step, labels, payload, _ = entry
        try:
            if (
                type(kept) is float
                and labels is None
                and payload is None
                and kind == "metric"
                and type(name) is str
                and type(step) is int
                and -LARGEST_WHOLE <= step <= LARGEST_WHOLE
            ):  # almost all records; without the constructor of a named tuple, which takes longer than the rest
                title, unit = _titled(name)
                return _tuple(Record, (kind, t, title, kept, step, NO_LABELS, self._rank, self._attempt, unit, None))
            title = _name(name)
            value: Value = None
            if type(kept) is float:
                value = kept
            elif isinstance(kept, str):
                kind, payload = "event", {"message": redact(kept)}
            elif isinstance(kept, dict):
                kind, payload = "event", kept
            elif kept is not None:
                value = settle(kept)
            elif kind == "metric":
                raise Unrecordable("bad-value", "None")  # noqa: TRY301 - one way out
            if payload is not None and not isinstance(payload, dict):
                payload, step = self._make_payload(payload, t, step), None
            unit = UNITS.get(title, NO_UNIT) if kind == "metric" else ""
            return Record(
                kind, t, title, value, self._step(step, title), labels or NO_LABELS,
                self._rank, self._attempt, unit, payload,
            )  # fmt: skip
        except Unrecordable as reason:
            self._buffer.drops.count(reason.reason, detail=f"{shown(name)}: {reason}")
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            self._buffer.drops.count("bad-value", detail=f"{shown(name)}: {type(error).__name__}: {shown(error)}")
        return None

    def _step(self, step: Any, name: str) -> int | None:
        """Return the step as a number, None with a warning if it is invalid.

        The metric is kept without it.
        """
        if step is None or (type(step) is int and -LARGEST_WHOLE <= step <= LARGEST_WHOLE):
            return step
        try:
            return _writable(_whole(step))
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            warn_once("bad-step", f"{name} is recorded without its step: {shown(error)}; pass a whole number")
            return None

    def _make_payload(self, make: PayloadMaker, t: float, step: Any) -> dict[str, object]:
        """Return a payload whose making was deferred to this thread; it contains the step."""
        self._payloads += 1
        number = None if step is None else _whole(step)
        return make(t, number, f"{self._origin.incarnation}-{self._payloads}")

    def _report_drops(self) -> None:
        """Warn once about each reason of drops, and record the counts."""
        for loss in self._buffer.drops.take_new():
            warn_once(loss.subject, loss.sentence())
            for worker in self._workers:
                if worker.name != loss.sink:  # it records its own gaps
                    worker.offer([drop_record(self._origin, loss)], 0)


def _whole(step: Any) -> int:
    """Return a step, an int or a kept value; raise `Unrecordable` if not whole."""
    if type(step) is int:
        return step
    number = settle(step)
    if not isinstance(number, float) or not number.is_integer():
        raise Unrecordable("bad-value", f"step {number} is not a whole number")
    return int(number)


def _writable(number: int) -> int:
    if abs(number) > LARGEST_WHOLE:
        raise Unrecordable("bad-value", f"a number of {number.bit_length()} bits")
    return number


@lru_cache(maxsize=1024)
def _titled(name: str) -> tuple[str, str]:
    """Return the name and the unit of a metric."""
    title = _name(name)
    return title, UNITS.get(title, NO_UNIT)


def _name(name: Any) -> str:
    if type(name) is str and name:
        return name if name.isascii() else keep_text(name)
    if isinstance(name, str) and name:
        return keep_text(str(name.value) if hasattr(name, "value") else str(name))
    raise Unrecordable("bad-name", type(name).__name__)
