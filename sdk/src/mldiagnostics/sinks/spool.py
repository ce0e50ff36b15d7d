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
from mldiagnostics.pipeline.sink import BatchPolicy, Sink, SinkMaker, SinkRefused, SinkUnavailable, SpoolFull
from mldiagnostics.spool.creation import create_directory
from mldiagnostics.spool.directory import abandoned_directories

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.spool.directory import SpoolDirectory

MAX_WAITING_BYTES = 64 * 1024 * 1024
"""Limit of the records that wait for a destination; further ones are dropped and counted."""

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
        self._max_bytes = max_bytes
        self._maker = maker
        self._destination = destination
        self._origin = origin
        self._sink = maker.make(origin)
        self._open = False
        self._spool: RecordSpool | None = None

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
        if self._spool is None:
            try:
                self._ensure_open()
                self._sink.write(batch)
            except SinkUnavailable as error:
                warn_once(
                    f"spooling {self._maker.name}",
                    f"sink {self._maker.name}: unavailable, records wait on the local disk: {error}",
                )
                self._spool = RecordSpool(
                    create_directory(self._destination, self._origin, form="records"), max_bytes=self._max_bytes
                )
            else:
                return
        self._spool.append(batch)

    def flush(self) -> None:
        """Send spooled records, also those of ended processes, and flush the sink."""
        self._ensure_open()
        if self._spool is not None:
            self._spool.drain_into(self._sink)
            self._spool.remove()
            self._spool = None
        for directory in abandoned_directories(self._destination, form="records"):
            self._deliver(directory)
        self._sink.flush()

    def close(self) -> None:
        """Close the sink; spooled records are left to the next process."""
        if self._spool is not None:
            self._spool.release()
        if self._open:
            self._sink.close()

    def _ensure_open(self) -> None:
        if not self._open:
            self._sink.open()
            self._open = True

    def _deliver(self, directory: SpoolDirectory) -> None:
        """Deliver an ended process's records with that process as their origin."""
        spool, sink = RecordSpool(directory, max_bytes=self._max_bytes), self._maker.make(directory.origin)
        try:
            sink.open()
            spool.drain_into(sink)
            sink.flush()
            sink.close()
        except SinkUnavailable:
            spool.release()
            raise
        spool.remove()


class RecordSpool:
    """A file of records in a spool directory, sent in order."""

    def __init__(self, directory: SpoolDirectory, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._directory = directory
        self._path: Path = directory.files / "records.jsonl"
        self._sent_bytes = 0

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch. Raises `SpoolFull`, or `SinkUnavailable` if the disk fails."""
        lines = GilYielder().results(encode, batch)
        try:
            with self._path.open("ab") as file:
                start = file.tell()
                if start > self._max_bytes:
                    raise SpoolFull(
                        f"{self._path}: {self._max_bytes >> 20} MiB of records wait already; check their receiver"
                    )
                try:
                    file.write("".join(lines).encode())
                    file.flush()
                except OSError:
                    os.ftruncate(file.fileno(), start)
                    raise
        except OSError as error:
            raise SinkUnavailable(f"{self._path}: {error.strerror}") from error

    def drain_into(self, sink: Sink) -> None:
        """Write all waiting records in order; drop batches that the sink rejects.

        Raises `SinkUnavailable` as the sink does.
        """
        for batch, end in self._batches(sink.batch_policy.records):
            try:
                sink.write(batch)
            except SinkRefused as error:
                warn_once("refused-spool", f"{self._path}: the sink rejected {len(batch)} spooled records: {error}")
            self._sent_bytes = end

    def remove(self) -> None:
        """Delete the file after all records were delivered."""
        self._directory.remove()

    def release(self) -> None:
        """Leave the waiting records to the next process."""
        self._directory.release()

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
