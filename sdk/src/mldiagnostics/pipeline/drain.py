"""The thread that empties the buffer: it reads values, makes records of entries and gives them to every sink's lane."""

from __future__ import annotations

import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, cast

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.metric_types import NO_UNIT, UNITS
from mldiagnostics.pipeline.backpressure import Backpressure, LanePatience
from mldiagnostics.pipeline.buffer import FlushToken
from mldiagnostics.pipeline.drops import shown
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import Record
from mldiagnostics.pipeline.sink_worker import drop_record
from mldiagnostics.pipeline.values import LARGEST_WHOLE, Unrecordable, keep_text, settle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.buffer import Buffer, Entry, Telling
    from mldiagnostics.pipeline.records import Value
    from mldiagnostics.pipeline.sink_worker import SinkWorker

PERIOD_S = 0.5
"""How often the buffer is emptied; with what follows, a record is in its file within a second."""

_SLICE = 64


class Drain:
    """Empties a buffer into lanes, in order, until it meets a marker that closes.

    What comes behind that marker stays in the buffer, for whoever drains it next.
    """

    def __init__(self, buffer: Buffer, origin: Origin, lanes: Sequence[SinkWorker], *, waits: bool = False) -> None:
        self._buffer = buffer
        self._origin = origin
        self._lanes = lanes
        self._wake: SimpleQueue[None] = SimpleQueue()  # may be used in a signal's handler, unlike an Event
        self._closed = False
        self._told = 0
        self._turns = GilYielder()
        self._backpressure = Backpressure(self.wake) if waits else None
        self._patience = LanePatience()
        self.thread = threading.Thread(target=self._serve, name="mldiagnostics-drain", daemon=True)

    def start(self) -> None:
        """Begin."""
        self.thread.start()
        if self._backpressure is not None:
            self._buffer.wait_by(self._backpressure)

    def wake(self) -> None:
        """Empty the buffer now, and not only when the period is over."""
        self._wake.put(None)

    def stop(self) -> None:
        """Take nothing more than what is in hand: somebody else empties the buffer from now on."""
        self._closed = True
        if self._backpressure is not None:
            self._buffer.wait_no_more()

    def _serve(self) -> None:
        while not self._closed:
            with suppress(Empty):
                self._wake.get(timeout=PERIOD_S)
            try:
                self._pass()
            except BaseException as error:  # noqa: BLE001 - the thread outlives whatever a foreign object raises
                warn_once("drain", f"records of this moment are lost: {error!r}")

    def _pass(self) -> None:
        """Deal with what is there now; what comes meanwhile waits for the next pass, or the pass might never end."""
        self._turns.begin()
        left = len(self._buffer.entries)
        while left > 0 and not self._closed:
            left -= self._take_slice(min(left, _SLICE))
            if self._backpressure is not None:
                self._backpressure.note_progress()
        self._tell_drops()

    def _take_slice(self, count: int) -> int:
        """Give the next records to the lanes, up to a marker; return how many entries that were."""
        records: list[Record] = []
        size = 0
        for taken in range(1, count + 1):
            entry = self._buffer.entries.popleft()
            if isinstance(entry, FlushToken):
                self._hand_over(records, size)
                if not entry.abandoned:
                    self._pass_on(entry)
                return taken
            record = self._record(entry)
            if record is not None:
                records.append(record)
                size += entry[-1]
            self._buffer.give_back(entry[-1])
            self._turns()
        self._hand_over(records, size)
        return count

    def _hand_over(self, records: list[Record], size: int) -> None:
        if records:
            for lane in self._lanes:
                if self._backpressure is not None:
                    self._patience.wait(lane, lambda: self._closed)
                lane.offer(records, size)

    def _pass_on(self, marker: FlushToken) -> None:
        self._tell_drops()
        self._closed = marker.closing
        for lane in self._lanes:
            lane.mark(marker)

    def _record(self, entry: Entry) -> Record | None:
        """Return the record of an entry, or None if its value cannot be read (any more), which is counted."""
        t, kind, name, kept, step, labels, payload, _ = entry
        try:
            title = _name(name)
            value: Value = None
            if type(kept) is float:
                value = kept
            elif isinstance(kept, str):
                kind, payload = "event", {"message": kept}
            elif isinstance(kept, dict):
                kind, payload = "event", kept
            elif kept is not None:
                value = settle(kept)
            elif kind == "metric":
                raise Unrecordable("bad-value", "None")  # noqa: TRY301 - one way out
            if payload is not None and not isinstance(payload, dict):
                payload, step = self._tell(payload, t, step), None
            unit = UNITS.get(title, NO_UNIT) if kind == "metric" else ""
            return Record(
                kind, t, title, value, self._step(step, title), labels or {},
                self._origin.rank, self._origin.attempt, unit, payload,
            )  # fmt: skip
        except Unrecordable as reason:
            self._buffer.drops.count(reason.reason, detail=f"{shown(name)}: {reason}")
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            self._buffer.drops.count("bad-value", detail=f"{shown(name)}: {type(error).__name__}: {shown(error)}")
        return None

    def _step(self, step: Any, name: str) -> int | None:
        """Return the step as a number; a metric without one is worth more than none at all."""
        if step is None:
            return None
        try:
            return _writable(step if type(step) is int else int(cast("float", settle(step))))
        except Exception as error:  # noqa: BLE001 - a framework may raise anything when it reads an array
            warn_once("bad-step", f"{name} is recorded without a step, which is no whole number: {shown(error)}")
            return None

    def _tell(self, telling: Telling, t: float, step: Any) -> dict[str, object]:
        """Have a payload made that was left to this thread; the step of an event is part of what it says."""
        self._told += 1
        number = step if step is None or type(step) is int else int(cast("float", settle(step)))
        return telling(t, number, f"{self._origin.incarnation}-{self._told}")

    def _tell_drops(self) -> None:
        """Say what was dropped, once for each reason, and put the counts among the records."""
        for loss in self._buffer.drops.take_news():
            warn_once(f"dropped {loss.sink} {loss.reason}", loss.sentence())
            for lane in self._lanes:
                if lane.name != loss.sink:  # it tells its own gaps, or takes nothing anyway
                    lane.offer([drop_record(self._origin, loss)], 0)


def _writable(number: int) -> int:
    if abs(number) > LARGEST_WHOLE:
        raise Unrecordable("bad-value", f"a number of {number.bit_length()} bits")
    return number


def _name(name: Any) -> str:
    if type(name) is str and name:
        return name if name.isascii() else keep_text(name)
    if isinstance(name, str) and name:
        return keep_text(str(name.value) if hasattr(name, "value") else str(name))
    raise Unrecordable("bad-name", type(name).__name__)
