"""Makes a remote sink outlast an outage: what it cannot take waits on the local disk, over restarts too."""

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

MAX_SPOOL_BYTES = 64 * 1024 * 1024
"""How much waits for a destination at most; what comes then is dropped and counted."""

_RETRY_S = 5.0


def spooled(maker: SinkMaker, destination: str, *, max_bytes: int = MAX_SPOOL_BYTES) -> SinkMaker:
    """Return a maker of such sinks that never lose a record to an outage shorter than the spool is large.

    `destination` tells one receiver from another, over restarts. The sink's `write` has to deliver: a record counts
    as delivered when it returns. A process that is killed while it catches up delivers a batch twice, none never.
    """
    return SinkMaker(maker.name, lambda origin: SpooledSink(maker, destination, origin, max_bytes=max_bytes))


class SpooledSink:
    """Writes through while the receiver answers and nothing waits; otherwise to the disk, and catches up in order."""

    durable = True

    def __init__(self, maker: SinkMaker, destination: str, origin: Origin, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._maker = maker
        self._destination = destination
        self._origin = origin
        self._sink = maker.make(origin)
        self._open = False
        self._spool: Spool | None = None

    @property
    def pace(self) -> BatchPolicy:
        """The sink's own, and every 5 s a look whether it takes what waits."""
        pace = self._sink.pace
        return replace(pace, flush_s=min(pace.flush_s, _RETRY_S))

    def open(self) -> None:
        """Open the sink if it can be; if not, its records wait."""
        with contextlib.suppress(SinkUnavailable):
            self._ensure_open()

    def write(self, batch: Sequence[Record]) -> None:
        """Write the batch, or have it wait. Raises `SinkRefused` when too much waits already."""
        if self._spool is None:
            try:
                self._ensure_open()
                self._sink.write(batch)
            except SinkUnavailable as error:
                warn_once(f"spooling {self._maker.name}", f"records for {self._destination} wait on disk: {error}")
                self._spool = Spool(
                    create_directory(self._destination, self._origin, form="records"), max_bytes=self._max_bytes
                )
            else:
                return
        self._spool.append(batch)

    def flush(self) -> None:
        """Catch up: what waits, what dead processes left, and what the sink holds back."""
        self._ensure_open()
        if self._spool is not None:
            self._spool.drain_into(self._sink)
            self._spool.remove()
            self._spool = None
        for left in abandoned_directories(self._destination, form="records"):
            self._adopt(left)
        self._sink.flush()

    def close(self) -> None:
        """Close the sink; what still waits is for the next process."""
        if self._spool is not None:
            self._spool.release()
        if self._open:
            self._sink.close()

    def _ensure_open(self) -> None:
        if not self._open:
            self._sink.open()
            self._open = True

    def _adopt(self, left: SpoolDirectory) -> None:
        """Deliver what a dead process left, in its name."""
        spool, sink = Spool(left, max_bytes=self._max_bytes), self._maker.make(left.origin)
        try:
            sink.open()
            spool.drain_into(sink)
            sink.flush()
            sink.close()
        except SinkUnavailable:
            spool.release()
            raise
        spool.remove()


class Spool:
    """A file of lines in a directory of the spool: appended to at its end, taken from its start."""

    def __init__(self, place: SpoolDirectory, *, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._directory = place
        self._path: Path = place.files / "records.jsonl"
        self._taken = 0

    def append(self, batch: Sequence[Record]) -> None:
        """Have a batch wait. Raises `SpoolFull` if the spool is full and `SinkUnavailable` if the disk is."""
        turns = GilYielder()
        lines = []
        for record in batch:
            lines.append(encode(record))
            turns()
        try:
            with self._path.open("ab") as file:
                start = file.tell()
                if start > self._max_bytes:
                    raise SpoolFull(f"{self._max_bytes >> 20} MiB wait in {self._path} already")
                try:
                    file.write("".join(lines).encode())
                    file.flush()
                except OSError:
                    os.ftruncate(file.fileno(), start)
                    raise
        except OSError as error:
            raise SinkUnavailable(f"{self._path}: {error.strerror}") from error

    def drain_into(self, sink: Sink) -> None:
        """Write all that waits, in order. Raises what the sink does, but drops a batch that it refuses."""
        for batch, end in self._batches(sink.pace.records):
            try:
                sink.write(batch)
            except SinkRefused as error:
                warn_once("refused-spool", f"{len(batch)} records of {self._path} are refused: {error}")
            self._taken = end

    def remove(self) -> None:
        """Delete the file: all is delivered."""
        self._directory.remove()

    def release(self) -> None:
        """Leave what waits to the next process."""
        self._directory.release()

    def _batches(self, size: int) -> Iterator[tuple[list[Record], int]]:
        """Yield batches from where the last delivery ended, each with the place of its end in the file."""
        batch: list[Record] = []
        turns = GilYielder()
        end = self._taken
        with contextlib.suppress(FileNotFoundError), self._path.open("rb") as file:
            file.seek(self._taken)
            for line in file:
                end += len(line)
                with contextlib.suppress(ValueError):  # cut off when its process was killed
                    batch.append(decode(line))
                turns()
                if len(batch) == size:
                    yield batch, end
                    batch = []
        if batch:
            yield batch, end
