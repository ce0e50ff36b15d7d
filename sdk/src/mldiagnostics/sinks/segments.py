"""Segment files of records on the local disk, appended to in whole lines.

A file is closed at a size and not written again.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import SEGMENT_HEAD, Record, encode, encode_head
from mldiagnostics.pipeline.sink import SinkUnavailable
from mldiagnostics.text.file_errors import file_problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin


class Segments:
    """One process's files below a run's directory; a batch is written whole or not."""

    def __init__(self, directory: Path, origin: Origin, *, max_bytes: int, number: int = 0) -> None:
        self._directory = directory
        self._origin = origin
        self._max_bytes = max_bytes
        self._number = number
        self._file = -1
        self._identity = (0, 0)
        self._bytes = 0

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch. Raises `SinkUnavailable` if the disk fails."""
        lines = GilYielder().results(encode, batch)
        self._ensure_open()
        self._write("".join(lines).encode())
        if self._bytes >= self._max_bytes:
            self.close()

    def open(self) -> None:
        """Create a file, so that readers see this process. Raises `SinkUnavailable`."""
        self._ensure_open()

    def close(self) -> None:
        """Close the file; the next batch creates another."""
        file, self._file = self._file, -1
        if self._link_count(file) is not None:
            os.close(file)

    @property
    def number(self) -> int:
        """The number of the last file; files in another directory continue from it."""
        return self._number

    @property
    def path(self) -> Path:
        """The path of the current file."""
        origin = self._origin
        key = layout.record_segment_key(
            attempt=origin.attempt, rank=origin.rank, incarnation=origin.incarnation, number=self._number
        )
        return self._directory / key

    def _ensure_open(self) -> None:
        if not self._link_count(self._file):
            self.close()  # the file may have been deleted
            try:
                self._open_next()
            except OSError as error:
                raise _unavailable(self.path, error) from error
        if not self._bytes:  # a full disk may have the file without its head
            self._write(encode_head(_head(self._origin, self._number)).encode())

    def _open_next(self) -> None:
        """Create the file of the next free number; an earlier run may have used some."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC
        while self._file < 0:
            self._number += 1
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self._file, self._bytes = os.open(self.path, flags, 0o666), 0
        status = os.fstat(self._file)
        self._identity = status.st_dev, status.st_ino

    def _link_count(self, file: int) -> int | None:
        """Return the file's link count; None if the descriptor is not the file's."""
        try:
            status = os.fstat(file)
        except OSError:
            return None
        return status.st_nlink if (status.st_dev, status.st_ino) == self._identity else None

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._remove_part()
            raise _unavailable(self.path, error) from error
        self._bytes += len(data)

    def _remove_part(self) -> None:
        """Remove the part of a batch that a full disk wrote.

        A file that cannot be changed any more is left.
        """
        try:
            os.ftruncate(self._file, self._bytes)
        except OSError:  # of a disk that failed, or became read-only
            if not self._bytes:  # each retry would leave an empty file
                with suppress(OSError):
                    self.path.unlink()
            self.close()


def _unavailable(path: Path, error: OSError) -> SinkUnavailable:
    instead = "choose another location with storage= (log= for a goodput log) or MLDIAG_STORAGE"
    return SinkUnavailable(f"{path}: {file_problem(error, instead)}")


def _head(origin: Origin, number: int) -> Record:
    labels = {
        "": "",  # makes DuckDB read labels as a map, not as columns of exactly these keys
        "run": origin.run_id,
        "name": origin.name,
        "host": origin.host,
        "slice": "" if origin.slice is None else str(origin.slice),
        "local_rank": str(origin.local_rank),
        "world_size": str(origin.world_size),
        "incarnation": origin.incarnation,
    }
    return Record(
        "event", time.time(), SEGMENT_HEAD, (float(number),), None, labels, origin.rank, origin.attempt, "1", {}
    )
