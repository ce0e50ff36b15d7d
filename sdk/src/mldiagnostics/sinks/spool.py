"""A spool for remote sinks: records wait on the local disk during an outage.

They are kept over restarts of the process.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import decode, encode
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.spool.decisions import MAX_WAITING_BYTES
from mldiagnostics.spool.directory import abandoned_directories
from mldiagnostics.spool.queue import SpoolQueue
from mldiagnostics.text.file_errors import file_problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.spool.directory import SpoolDirectory

_RETRY_S = 5.0


def spooled(maker: SinkMaker, destination: str, *, max_bytes: int = MAX_WAITING_BYTES) -> SinkMaker:
    """Return a maker of the same sinks with a spool: an outage drops no records.

    A record counts as delivered when the sink's `write` returns. A process that is killed while it sends spooled
    records may deliver a batch twice, but loses none.

    Args:
        maker: Makes the sinks.
        destination: Identifies the receiver, over restarts.
        max_bytes: Size limit of the waiting records.
    """
    return SinkMaker(maker.name, lambda origin: SpooledSink(maker, destination, origin, max_bytes=max_bytes))


class SpooledSink:
    """Writes to the sink, or to the disk in an outage; keeps the records' order."""

    durable = True

    def __init__(self, maker: SinkMaker, destination: str, origin: Origin, *, max_bytes: int) -> None:
        self._maker = maker
        self._destination = destination
        self._queue = SpoolQueue(destination, origin, form="records", max_bytes=max_bytes)
        self._sink = maker.make(origin)
        self._open = False
        self._waiting: WaitingRecords | None = None

    @property
    def batch_policy(self) -> BatchPolicy:
        """The sink's own, with a flush every 5 s that sends spooled records."""
        batch_policy = self._sink.batch_policy
        return replace(batch_policy, flush_s=min(batch_policy.flush_s, _RETRY_S))

    def open(self) -> None:
        """Open the sink; if it is unavailable, its records are spooled."""
        with contextlib.suppress(SinkUnavailable):
            self._ensure_open()

    def write(self, batch: Sequence[Record]) -> None:
        """Write the batch, or spool it. Raises `SinkRefused` if the spool is full."""
        if self._waiting is None:
            try:
                self._ensure_open()
                self._sink.write(batch)
            except SinkUnavailable as error:
                warn_once(
                    f"spooling {self._maker.name}",
                    f"sink {self._maker.name}: unavailable, records wait on the local disk: {error}",
                )
                self._waiting = WaitingRecords(self._queue.files)
            else:
                return
        self._queue.require_room()
        self._waiting.append(batch)

    def flush(self) -> None:
        """Send spooled records, also those of ended processes, and flush the sink."""
        self._ensure_open()
        if self._waiting is not None:
            self._waiting.drain_into(self._sink)
            self._queue.remove()
            self._waiting = None
        for directory in abandoned_directories(self._destination, form="records"):
            self._deliver(directory)
        self._sink.flush()

    def close(self) -> None:
        """Close the sink; spooled records are left to the next process."""
        self._queue.close()
        if self._open:
            self._sink.close()

    def _ensure_open(self) -> None:
        if not self._open:
            self._sink.open()
            self._open = True

    def _deliver(self, directory: SpoolDirectory) -> None:
        """Deliver an ended process's records with that process as their origin."""
        sink = self._maker.make(directory.origin)
        try:
            sink.open()
            WaitingRecords(directory.files).drain_into(sink)
            sink.flush()
            sink.close()
        except BaseException:
            directory.release()
            with contextlib.suppress(Exception):
                sink.close()
            raise
        directory.remove()


class WaitingRecords:
    """A file of records in a spool directory, sent in order.

    A second file has the number of bytes that were sent.
    """

    def __init__(self, files: Path) -> None:
        self._path = files / "records.jsonl"
        self._sent_path = files / "sent"
        self._sent_bytes = self._kept()

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch. Raises `SinkUnavailable` if the disk fails."""
        lines = GilYielder().results(encode, batch)
        try:
            with self._path.open("ab") as file:
                start = file.tell()
                try:
                    file.write("".join(lines).encode())
                    file.flush()
                except OSError:
                    os.ftruncate(file.fileno(), start)
                    raise
        except OSError as error:
            raise SinkUnavailable(
                f"{self._path}: {file_problem(error, 'set MLDIAG_SPOOL to another directory')}"
            ) from error

    def drain_into(self, sink: Sink) -> None:
        """Write all waiting records in order; drop batches that the sink rejects.

        Raises `SinkUnavailable` as the sink does.
        """
        for batch, end in self._batches(sink.batch_policy.records):
            try:
                sink.write(batch)
            except SinkRefused as error:
                warn_once("refused-spool", f"{self._path}: the sink rejected {len(batch)} spooled records: {error}")
            self._keep(end)

    def _kept(self) -> int:
        """Return the bytes that were sent, by this process or one before."""
        try:
            return min(int(self._sent_path.read_bytes()), self._path.stat().st_size)
        except (OSError, ValueError):
            return 0

    def _keep(self, sent_bytes: int) -> None:
        self._sent_bytes = sent_bytes
        with contextlib.suppress(OSError):  # a full disk: the next process repeats the batch
            file = os.open(self._sent_path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            with os.fdopen(file, "wb", buffering=0) as opened:
                opened.write(b"%020d" % sent_bytes)

    def _batches(self, size: int) -> Iterator[tuple[list[Record], int]]:
        """Yield the batches not sent yet, each with the offset of its end."""
        batch: list[Record] = []
        yield_gil = GilYielder()
        end = self._sent_bytes
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._sent_bytes)
            for line in file:
                end += len(line)
                with contextlib.suppress(ValueError):  # its process was killed while it wrote
                    batch.append(decode(line))
                yield_gil()
                if len(batch) == size:
                    yield batch, end
                    batch = []
        if batch:
            yield batch, end
