"""The thread that empties the buffer.

It reads values, makes records and passes them to the sink workers. It does not wait for a device: records whose values
are not ready are held back, and read in a later pass.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.backpressure import Backpressure
from mldiagnostics.pipeline.buffer import FlushToken, ReadyRecords
from mldiagnostics.pipeline.deferred_value import can_wait
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.overload import Overload
from mldiagnostics.pipeline.record_maker import RecordMaker
from mldiagnostics.pipeline.sink_backpressure import SinkBackpressure
from mldiagnostics.pipeline.sink_worker import drop_record
from mldiagnostics.pipeline.unready import UnreadyEntries

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.buffer import Buffer, Entry
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.pipeline.sink_worker import SinkWorker

PERIOD_S = 0.5
"""Seconds between passes over the buffer; a record is in its file within a second."""

_POLL_S = 0.02  # between looks at values for which a caller waits
_JOIN_TIMEOUT_S = 0.2  # a thread that does not wait for a device stops within a slice
_SLICE = 64
_SKIPPED = 1024
_PIECE = 8  # single numbers that are read between two looks at the time


class Drain:
    """Empties a buffer into sink workers, in order, up to a closing token.

    Entries behind that token stay in the buffer, for its next drain. Records whose values are not ready come later, see
    `UnreadyEntries`.
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
        self._record = RecordMaker(origin, buffer.drops).make
        self._workers = (*workers, *observers)
        self._overload = Overload(buffer, workers)
        self._wake: SimpleQueue[None] = SimpleQueue()  # safe in a signal handler, unlike an Event
        self._closed = self._is_complete = False
        self._unready = UnreadyEntries(buffer)
        self._in_hand = 0  # records that no worker has, while the value of the last one is read
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

    def stop(self, token: FlushToken) -> None:
        """Stop after the current entries; another drain may take over the buffer.

        Entries before the closing token that have not been read are dropped and counted.
        """
        self._closed = True
        self._buffer.limit(None)
        if self._backpressure is not None:
            self._buffer.disable_waiting()
        if not self._is_complete:
            self.wake()
            self.thread.join(_JOIN_TIMEOUT_S)
        if not self._is_complete:
            self._drop_unread(token)

    def _drop_unread(self, token: FlushToken) -> None:
        entries: list[Entry | FlushToken | ReadyRecords] = [*self._unready.entries]
        with suppress(IndexError):  # the token is not in the buffer
            while not self._unready.is_closing and (entry := self._buffer.entries.popleft()) is not token:
                entries.append(entry)
        number = self._in_hand
        for entry in entries:
            if isinstance(entry, tuple):
                number += 1
                self._buffer.give_back(entry[-1])
            elif isinstance(entry, ReadyRecords):
                number += len(entry.records)
        if number:
            self._buffer.drops.count("unwritten", number, detail="values that are not ready or not read")

    def _note_full(self) -> None:
        self._overload.note_full()
        if self._wake.empty():
            self._wake.put(None)

    def _serve(self) -> None:
        while not self._closed:
            with suppress(Empty):
                self._wake.get(timeout=_POLL_S if self._unready.has_token else PERIOD_S)
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
        left = self._unready.restart()
        while left > 0 and not self._closed:
            left -= self._take_slice(self._unready.entries, min(left, _SLICE))
        left = len(self._buffer.entries)
        while left > 0 and not self._is_ending():
            if self._backpressure is None and self._overload.is_late():
                left -= self._skip_metrics(min(left, _SKIPPED))
                continue
            left -= self._take_slice(self._buffer.entries, min(left, _SLICE))
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
        while left > 0 and not self._is_ending():
            left -= self._take_slice(entries, left)
        self._yield_gil()
        return count

    def _is_ending(self) -> bool:
        """Return whether the other entries of the buffer belong to its next drain."""
        return self._closed or self._unready.is_closing

    def _take_slice(self, entries: deque[Any], count: int) -> int:
        """Pass the next records to the workers, up to a token or ready records.

        Return the number of entries.
        """
        records: list[Record] = []
        size = 0
        for taken in range(1, count + 1):
            entry = entries.popleft()
            if not isinstance(entry, tuple):
                self._hand_over(records, size)
                self._pass_on(entry)
                return taken
            if type(entry[3]) is not float or type(entry[4]) is not int or self._unready.waiting:
                if self._unready.hold(entry):
                    self._yield_gil()
                    continue
                if can_wait(entry[3]) or can_wait(entry[4]):
                    self._hand_over(records, size)
                    records, size = [], 0
                self._in_hand = len(records) + 1
            record = self._record(entry)
            if self._closed:  # `stop` counts the records as dropped
                self._in_hand = len(records) + (record is not None)
                return taken
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
        elif not entry.abandoned and not self._unready.hold_token(entry):
            self._forward(entry)

    def _hand_over(self, records: list[Record], size: int) -> None:
        self._in_hand = 0
        if records:
            steps = (each.step for each in reversed(records) if each.kind == "metric" and each.step is not None)
            self.last_step = next(steps, self.last_step)
            for worker in self._workers:
                if self._backpressure is not None:
                    self._sink_backpressure.wait(worker, lambda: self._closed)
                worker.offer(records, size)

    def _forward(self, token: FlushToken) -> None:
        self._is_complete = token.closing
        self._report_drops()
        self._closed = self._closed or token.closing
        for worker in self._workers:
            worker.put_token(token)

    def _report_drops(self) -> None:
        """Warn once about each reason of drops, and record the counts."""
        for loss in self._buffer.drops.take_new():
            warn_once(loss.subject, loss.sentence())
            for worker in self._workers:
                if worker.name != loss.sink:  # it records its own gaps
                    worker.offer([drop_record(self._origin, loss)], 0)
