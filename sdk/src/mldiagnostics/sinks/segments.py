"""Segment files of records on the local disk, appended to in whole lines.

A file is closed at a size and not written again.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from mldiagnostics import layout
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import SEGMENT_HEAD, Record, encode, encode_head
from mldiagnostics.pipeline.sink import SinkUnavailable
from mldiagnostics.sinks.appended_file import AppendedFile
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
        self._file = AppendedFile()

    def append(self, batch: Sequence[Record]) -> None:
        """Append a batch. Raises `SinkUnavailable` if the disk fails."""
        lines = GilYielder().results(encode, batch)
        self._ensure_open()
        self._write("".join(lines).encode())
        if self._file.bytes >= self._max_bytes:
            self.close()

    def open(self) -> None:
        """Create a file, so that readers see this process. Raises `SinkUnavailable`."""
        self._ensure_open()

    def close(self) -> None:
        """Close the file; the next batch creates another."""
        self._file.close()

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
        if not self._file.is_intact():  # it may have been deleted
            try:
                self._create_next()
            except OSError as error:
                raise _unavailable(self.path, error) from error
        if not self._file.bytes:  # a full disk may have the file without its head
            self._write(encode_head(_head(self._origin, self._number)).encode())

    def _create_next(self) -> None:
        """Create the file of the next free number; an earlier run may have used some."""
        while not self._file.is_intact():
            self._number += 1
            with suppress(FileExistsError):
                self._file.create(self.path)

    def _write(self, data: bytes) -> None:
        try:
            self._file.append(data)
        except OSError as error:
            raise _unavailable(self.path, error) from error


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
