"""Files of records on the local disk: appended to by whole lines, closed at a size, never written again."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import Record, encode, encode_head
from mldiagnostics.pipeline.sink import SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.identity.origin import Origin

HEAD = "segment"
"""Name of the event that begins each file: whose records follow. It has every key a record can have, with a value of
the right type, since readers like DuckDB take the columns and their types from the first lines."""


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Segments:
    """The files of one process below a run's directory; a batch is in the file, whole, or it is not at all."""

    def __init__(self, directory: Path, origin: Origin, *, max_bytes: int, number: int = 0) -> None:
        self._directory = directory
        self._origin = origin
        self._max_bytes = max_bytes
        self._number = number
        self._file = -1
        self._identity = (0, 0)
        self._bytes = 0

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch. Raises `SinkUnavailable` if the disk does not take it, now."""
        turns = GilYielder()
        lines = []
        for record in batch:
            lines.append(encode(record))
            turns()
        self._ensure_open()
        self._write("".join(lines).encode())
        if self._bytes >= self._max_bytes:
            self.close()

    def open(self) -> None:
        """Begin a file now, so that this process is seen. Raises `SinkUnavailable` if the disk does not take it."""
        self._ensure_open()

    def close(self) -> None:
        """Close the file; the next batch begins another."""
        file, self._file = self._file, -1
        if self._links(file) is not None:
            os.close(file)

    @property
    def number(self) -> int:
        """The number of the last file; another directory's files go on from there."""
        return self._number

    @property
    def path(self) -> Path:
        """The file of the current number."""
        origin = self._origin
        key = layout.record_segment_key(
            attempt=origin.attempt, rank=origin.rank, incarnation=origin.incarnation, number=self._number
        )
        return self._directory / key

    def _ensure_open(self) -> None:
        if not self._links(self._file):
            self.close()  # also a file that somebody deleted
            try:
                self._open_next()
            except OSError as error:
                raise _unavailable(self.path, error) from error
        if not self._bytes:  # a full disk may have taken the file and not its head
            self._write(encode_head(_head(self._origin, self._number)).encode())

    def _open_next(self) -> None:
        """Open the file of the next free number: an earlier run of this process may have written some."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC
        while self._file < 0:
            self._number += 1
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                self._file, self._bytes = os.open(self.path, flags, 0o666), 0
        status = os.fstat(self._file)
        self._identity = status.st_dev, status.st_ino

    def _links(self, file: int) -> int | None:
        """Return how many names our file has; None if somebody closed it, and may have opened another in its stead."""
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
            os.ftruncate(self._file, self._bytes)  # a full disk takes a part of a write
            raise _unavailable(self.path, error) from error
        self._bytes += len(data)


def _unavailable(path: Path, error: OSError) -> SinkUnavailable:
    cure = "free some space or choose" if error.errno in _FULL else "choose"
    place = "another place with storage= (a goodput log: log=) or MLDIAG_STORAGE"
    return SinkUnavailable(f"{path}: {error.strerror}: {cure} {place}")


def _head(origin: Origin, number: int) -> Record:
    labels = {
        "": "",  # for DuckDB, which would take the keys of these labels for columns, and no others
        "run": origin.run_id,
        "name": origin.name,
        "host": origin.host,
        "slice": "" if origin.slice is None else str(origin.slice),
        "local_rank": str(origin.local_rank),
        "world_size": str(origin.world_size),
        "incarnation": origin.incarnation,
    }
    return Record("event", time.time(), HEAD, (float(number),), None, labels, origin.rank, origin.attempt, "1", {})
