"""Thread and queue of one sink, which may be slow without delaying others."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Literal, TypeAlias

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.buffer import CAPACITY, CAPACITY_BYTES, FlushToken
from mldiagnostics.pipeline.drops import DroppedRecords
from mldiagnostics.pipeline.records import Record
from mldiagnostics.pipeline.sink import SinkNotReady, SinkUnavailable, SpooledForNow, SpoolFull
from mldiagnostics.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.drops import Drops, Reason
    from mldiagnostics.pipeline.sink import SinkMaker

Batch: TypeAlias = "tuple[list[Record], int]"
"""Records, and the bytes of their values beyond single numbers."""

_LONG_PAUSE_S = 4.0

Outcome: TypeAlias = Literal["done", "later", "never"]


class SinkWorker:
    """Writes batches of the drain to one sink, in order.

    Records beyond its bounds are dropped and counted.

    Records that the sink cannot take now are kept and retried, after 0.5 s at first and at most 30 s.
    """

    def __init__(self, maker: SinkMaker, origin: Origin, drops: Drops) -> None:
        self.name = redact(maker.name)  # a URL, which is in records and messages
        self.written = 0
        self._sink = maker.make(origin)
        self._drops = drops
        self._origin = origin
        self._overflowed = 0
        self._queue: SimpleQueue[Batch | FlushToken] = SimpleQueue()
        self._offered = self._offered_bytes = 0  # counted by the drain
        self._settled = self._settled_bytes = 0  # counted by the worker
        self._held: deque[Record] = deque()
        self._held_sizes: deque[tuple[int, int]] = deque()
        """Records and bytes of each batch in `_held`; of the first one, the records that are left."""
        self._held_since = 0.0
        self._opened = False
        self._is_spooled = False
        self._refusal: Reason = "refused"
        self._batch_policy = self._sink.batch_policy
        self._unflushed_since = math.inf
        self._writing, self._flushing = _RetrySchedule(), _RetrySchedule()
        self.thread = threading.Thread(target=self._serve, name=f"mldiagnostics-{self.name}", daemon=True)

    def start(self) -> None:
        """Start the thread, which opens the sink."""
        self.thread.start()

    @property
    def waiting(self) -> int:
        """Number of records that the sink has not taken yet."""
        return self._offered - self._settled

    def offer(self, records: list[Record], size: int) -> None:
        """Queue a batch, or drop it if the sink is too far behind.

        Called by the drain only.
        """
        if self.waiting + len(records) > CAPACITY or self._offered_bytes - self._settled_bytes + size > CAPACITY_BYTES:
            self._overflowed += self._drop("queue-full", records)
            return
        if self._overflowed:  # the sink records its own gap, as soon as it can
            gap = drop_record(self._origin, DroppedRecords(self.name, "queue-full", self._overflowed, ""))
            self._overflowed, records = 0, [gap, *records]
        self._offered += len(records)
        self._offered_bytes += size
        self._queue.put((records, size))

    def put_token(self, token: FlushToken) -> None:
        """Queue a token, which is acknowledged when the records before it are delivered."""
        self._queue.put(token)

    def _serve(self) -> None:
        while True:
            item = self._take()
            if isinstance(item, FlushToken):
                delivered = self._deliver_by(item)
                if item.closing:
                    self._close()
                item.acknowledge(delivered=delivered)
                if item.closing:
                    return
            else:
                if item is not None:
                    self._hold(*item)
                self._write_and_flush_if_due()

    def _take(self) -> Batch | FlushToken | None:
        """Return the next item, or None when a write or a flush is due."""
        due_at = min(self._write_at(), self._flush_at())
        timeout_s = None if due_at == math.inf else max(0.0, due_at - time.monotonic())
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None

    def _hold(self, records: list[Record], size: int) -> None:
        if not self._held:
            self._held_since = time.monotonic()
        self._held.extend(records)
        self._held_sizes.append((len(records), size))

    def _settle(self, count: int) -> None:
        """Take the first records out of memory.

        The bytes of a batch are free once its last record is.
        """
        for _ in range(count):
            self._held.popleft()
        self._settled += count
        while self._held_sizes and count >= self._held_sizes[0][0]:
            records, size = self._held_sizes.popleft()
            count -= records
            self._settled_bytes += size
        if count:
            records, size = self._held_sizes[0]
            self._held_sizes[0] = records - count, size

    def _write_at(self) -> float:
        """Return the time of the next write.

        A full batch at once, a smaller one after `gather_s`.
        """
        if not self._opened:
            return self._writing.at
        if not self._held:
            return math.inf
        full = len(self._held) >= self._batch_policy.records
        return max(self._writing.at, self._held_since + (0.0 if full else self._batch_policy.gather_s))

    def _flush_at(self) -> float:
        return max(self._flushing.at, self._unflushed_since + self._batch_policy.flush_s)

    def _write_and_flush_if_due(self) -> None:
        if time.monotonic() >= self._write_at():
            self._write_held()
        if time.monotonic() >= self._flush_at():
            self._flush()

    def _deliver_by(self, token: FlushToken) -> bool:
        """Write and flush all records before the token, with retries until its deadline."""
        while True:
            outcome = self._write_held()
            if outcome == "done":
                outcome = self._flush()
            pause_s = max(self._writing.pause_s, self._flushing.pause_s)
            left_s = token.deadline - time.monotonic()
            if outcome != "later" or left_s <= 0 or self._is_spooled or (token.closing and self._can_leave(pause_s)):
                return outcome == "done"
            time.sleep(min(left_s, pause_s))

    def _can_leave(self, pause_s: float) -> bool:
        """Return whether the exit need not wait.

        Written records are safe, or the sink is down for long.
        """
        return (not self._held and self._sink.durable) or pause_s > _LONG_PAUSE_S

    def _write_held(self) -> Outcome:
        """Write the held records in batches; return "done" if none is left."""
        if not self._opened and (outcome := self._open()) != "done":
            return outcome
        while self._held:
            batch = list(islice(self._held, self._batch_policy.records))
            outcome = self._call(lambda: self._sink.write(batch), self._writing)  # noqa: B023 - called at once
            if outcome == "later":
                return outcome
            self._settle(len(batch))
            if outcome == "never":
                self._drop(self._refusal, batch)
            else:
                self.written += len(batch)
                self._unflushed_since = min(self._unflushed_since, time.monotonic())
        return "done"

    def _open(self) -> Outcome:
        outcome = self._call(self._sink.open, self._writing)
        if outcome == "done":
            self._opened = True
        elif outcome == "never":  # it will not accept records either
            self._drop("refused", self._held)
            self._settle(len(self._held))
            self._writing.delay()
        return outcome

    def _drop(self, reason: Reason, records: Collection[Record]) -> int:
        """Count dropped records, except drop records.

        Two sinks could report each other for ever.
        """
        number = sum(record.kind != "drop" for record in records)
        if number:
            self._drops.count(reason, number, sink=self.name)
        return number

    def _flush(self) -> Outcome:
        outcome = self._call(self._sink.flush, self._flushing)
        if outcome != "later":
            self._unflushed_since = math.inf
        return outcome

    def _close(self) -> None:
        self._call(self._sink.close, self._flushing)

    def _call(self, action: Callable[[], object], retry: _RetrySchedule) -> Outcome:
        """Call the sink, and map its errors to an outcome for the records."""
        try:
            action()
        except SpooledForNow:
            retry.delay()
            self._is_spooled = True
            return "later"
        except SinkUnavailable as error:
            retry.delay()
            kind = "sink-not-ready" if isinstance(error, SinkNotReady) else "sink-unavailable"
            warn_once(f"{kind} {self.name}", f"sink {self.name}: unavailable, will be retried: {error}")
            return "later"
        except Exception as error:  # noqa: BLE001 - a sink's fault must not end its thread
            warn_once(f"sink-refused {self.name}", f"sink {self.name}: rejected records, which are dropped: {error!r}")
            self._refusal = "spool-full" if isinstance(error, SpoolFull) else "refused"
            retry.reset()
            return "never"
        retry.reset()
        self._is_spooled = False
        return "done"


def drop_record(origin: Origin, loss: DroppedRecords) -> Record:
    """Return the record that reports dropped records."""
    labels = {"sink": loss.sink} if loss.sink else {}
    payload = {"detail": redact(loss.detail)} if loss.detail else None
    rank, attempt = origin.rank, origin.attempt
    return Record("drop", time.time(), loss.reason, float(loss.number), None, labels, rank, attempt, "", payload)


class _RetrySchedule:
    """Time of the next attempt: at once at first, then after doubling pauses."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.at, self.pause_s = 0.0, 0.0

    def delay(self) -> None:
        self.pause_s = min(30.0, max(0.5, self.pause_s * 2))
        self.at = time.monotonic() + self.pause_s
