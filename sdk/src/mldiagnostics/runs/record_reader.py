"""Incremental reading of the records of a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from mldiagnostics.goodput.log.blocks import ReadPosition
from mldiagnostics.runs.record_files import record_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.layout import RecordSegment
    from mldiagnostics.runs.record_files import RecordFile, RecordFiles


@dataclass(frozen=True, slots=True)
class RecordBlock:
    """Whole lines of one file."""

    segment: RecordSegment
    lines: bytes


@dataclass(slots=True)
class _ReadFile:
    """How far a file was read."""

    file: RecordFile
    position: ReadPosition = field(default_factory=ReadPosition)


class RecordReader:
    """Reads the records of one run, each time only the lines that are new.

    All lines together are those of a reader that starts now, in the same order for each process: if a file that was
    read has changed otherwise than by growing at the end of its process's last file, everything is read anew, and
    `restarts` counts one more. Used by one thread at a time.

    Args:
        directory: The directory of the run, a path or URL.
        rank: Read only the files of this rank.
        attempt: Read only the files of this attempt.
    """

    def __init__(self, directory: str, *, rank: int | None = None, attempt: int | None = None) -> None:
        self._files: RecordFiles = record_files(directory)
        self._rank, self._attempt = rank, attempt
        self._read: dict[str, _ReadFile] = {}
        self.restarts = 0
        """How often everything was read anew."""
        self.bytes_read = 0
        """Bytes of all whole lines so far."""

    def blocks(self) -> Iterator[RecordBlock]:
        """Yield blocks of whole lines that are new.

        The files come in order of attempt, rank, incarnation and number. A last line without its end is left for the
        next call. Once `restarts` has changed, at a block or at the end, all blocks before are void.

        Raises:
            StoreError: The files cannot be listed or read. The next call continues.
        """
        files = self._listed()
        if self._is_rewritten(files):
            self._restart()
        changed = [file for file in files if file.key not in self._read or file != self._read[file.key].file]
        for file, opened in self._files.open(changed):
            with opened:
                read = self._read.get(file.key)
                if read is not None and not read.position.is_in(opened):
                    self._restart()
                    break
                yield from self._new_blocks(file, opened)
        else:
            return
        yield from self.blocks()

    def _listed(self) -> list[RecordFile]:
        return [
            file
            for file in self._files.list()
            if self._rank in (None, file.segment.rank) and self._attempt in (None, file.segment.attempt)
        ]

    def _is_rewritten(self, files: list[RecordFile]) -> bool:
        """Return whether a reader that starts now would read other lines or another order."""
        listed = {file.key: file for file in files}
        last: dict[tuple[int, int, str], int] = {}
        for key, read in self._read.items():
            file = listed.get(key)
            if file is None or file.signature != read.file.signature or file.size < read.position.offset:
                return True
            last[file.segment[:3]] = max(file.segment.number, last.get(file.segment[:3], 0))
        return any(
            file.segment.number < last.get(file.segment[:3], 0)
            and (file.key not in self._read or file.size != self._read[file.key].file.size)
            for file in files
        )

    def _restart(self) -> None:
        self._read.clear()
        self.restarts += 1

    def _new_blocks(self, file: RecordFile, opened: BinaryIO) -> Iterator[RecordBlock]:
        unread = file._replace(size=-1)  # differs from the listed file until all was read
        read = self._read.setdefault(file.key, _ReadFile(unread))
        for block, end in read.position.new_lines(opened):
            read.position.move(block, end)
            self.bytes_read += len(block)
            if block:
                yield RecordBlock(file.segment, block)
        read.file = file
