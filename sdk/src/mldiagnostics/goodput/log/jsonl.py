"""Logs on the local disk: a directory of JSON lines files, or one such file."""

from __future__ import annotations

import stat
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, LogMissing, LogUnreadable
from mldiagnostics.goodput.log.blocks import LISTINGS, ReadPosition
from mldiagnostics.goodput.log.folder import SUFFIX, LogFolder
from mldiagnostics.goodput.log.lines import LineParser
from mldiagnostics.layout import RECORDS_DIR, RUN_RECORD
from mldiagnostics.locations import local_path
from mldiagnostics.sinks.jsonl import LOCAL_SEGMENT_BYTES
from mldiagnostics.store.shared import Reader

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from mldiagnostics.goodput.events.listener import EventListener
    from mldiagnostics.goodput.log.lines import LoggedPayload


@dataclass(slots=True)
class _LogFile:
    """A file of the log; `size` is its size at the last read."""

    lines: LineParser
    position: ReadPosition = field(default_factory=ReadPosition)
    size: int = -1
    over: bool = False
    """Whether the file is full, followed by another one and completely read; it is not read again."""


class LocalLog:
    """The log in a directory, in its `records` folder if it has one, or in one file.

    A file that has shrunk is read again; repeated events count once.
    """

    def __init__(self, location: str, *, job_name: str | None = None) -> None:
        path = local_path(location)
        if path is None:
            raise ConfigurationError(
                f"log: {location!r} is not a goodput log; pass a path, file:///…, gs://…, s3://…, az://… or "
                "cloud-logging:…"
            )
        self._path: Path = path
        self._reader = Reader(str(path))
        self._folders = (LogFolder(str(path / RECORDS_DIR), self._reader), LogFolder(str(path), self._reader))
        self._job_name = job_name
        self._files: dict[str, _LogFile] = {}
        self.jobs: set[str] = set()

    @property
    def name(self) -> str:
        """The path."""
        return str(self._path)

    def read_new(self, history: EventListener, now: datetime) -> None:  # noqa: ARG002 - all files are read
        """See `Log.read_new`."""
        self._feed(history)
        while history.begin_again():
            self._files = {}
            self._feed(history)

    def payloads(self, now: datetime) -> Iterator[LoggedPayload]:  # noqa: ARG002 - as above
        """See `Log.payloads`."""
        for lines, block in self._new_blocks({}):
            yield from lines.payloads(block)

    def exists(self) -> bool:
        """See `Log.exists`."""
        try:
            self._sizes({})
        except LogMissing:
            return False
        except OSError as error:
            raise LogUnreadable(f"{self._path}: cannot read the goodput log: {error}") from error
        return True

    def position(self) -> dict[str, object]:
        """See `Log.position`."""
        return {
            path: [file.position.offset, file.position.tail.hex(), file.lines.rank, file.lines.run]
            for path, file in self._files.items()
        }

    def resume(self, position: dict[str, object]) -> None:
        """See `Log.resume`."""
        files = {}
        for path, value in position.items():
            match value:
                case [int(offset), str(tail), int(rank), str(run)] if _has_tail(path, offset, tail, self._reader):
                    files[path] = _LogFile(self._lines(rank, run), ReadPosition(offset, tail=bytes.fromhex(tail)))
                case _:
                    raise ValueError(f"{path}: {value!r} is not a position of this file; it may be a new one")
        self._files = files

    def _feed(self, history: EventListener) -> None:
        for lines, block in self._new_blocks(self._files):
            lines.feed(block, history)

    def _new_blocks(self, files: dict[str, _LogFile]) -> Iterator[tuple[LineParser, bytes]]:
        """Yield the whole lines after the positions in `files`, the oldest files first."""
        try:
            for _ in range(LISTINGS):
                if not (yield from self._listed_blocks(files)):
                    return
                for folder in self._folders:
                    folder.forget()
        except OSError as error:
            raise LogUnreadable(f"{self._path}: cannot read the goodput log: {error}") from error

    def _listed_blocks(self, files: dict[str, _LogFile]) -> Generator[tuple[LineParser, bytes], None, bool]:
        """Yield the same of one listing; return whether a file is gone since.

        A longer one has replaced it then.
        """
        folder, sizes, is_gone = self._sizes(files)
        for path, size in sizes:
            file = files.get(path)
            if file is None:
                file = files[path] = _LogFile(self._lines())
            if size != file.size:
                if size < file.position.offset:
                    file.position = ReadPosition()
                try:
                    yield from _blocks_of(path, file, self._reader)
                except FileNotFoundError:
                    is_gone = True
                    continue
                file.size = size
            file.over = path in folder.followed and size == file.position.offset >= LOCAL_SEGMENT_BYTES
        return is_gone

    def _sizes(self, files: dict[str, _LogFile]) -> tuple[LogFolder, list[tuple[str, int]], bool]:
        """Return the files that can have new lines, with their sizes.

        Return also whether a listed one is gone. Raises `LogMissing` without files, `OSError` if that is unknown.
        """
        for folder in self._folders:
            try:
                paths = folder.paths()
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                paths = [str(self._path)]
            open_ones = [path for path in paths if path not in files or not files[path].over]
            sizes = sorted(_files(open_ones, self._reader))
            if sizes or len(open_ones) < len(paths):
                is_gone = len(sizes) < len(open_ones)
                return folder, [(path, size) for _, path, size in sizes], is_gone
        below = "".join(f"; {folder} has one" for folder in _logs_below(self._path))
        raise LogMissing(
            f"{self._path}: no goodput log; it has no {RECORDS_DIR}/*{SUFFIX} and no *{SUFFIX}; name the log "
            f"with log=, or set MLDIAG_GOODPUT_LOG or MLDIAG_STORAGE as for the job{below}"
        )

    def _lines(self, rank: int = 0, run: str = "") -> LineParser:
        of_run = (self._path / RUN_RECORD).exists()  # all events are of that run, with any job name
        if of_run:
            return LineParser(rank=rank, run=run)
        return LineParser(job_name=self._job_name, rank=rank, run=run, jobs=self.jobs)


def _logs_below(root: Path, most: int = 3) -> Iterator[Path]:
    """Yield some logs below a directory, which can be a root of logs or of runs."""
    folders = (folder for depth in ("*", "*/*", "*/*/*") for folder in root.glob(f"{depth}/{RECORDS_DIR}"))
    return (folder.parent for folder in islice(folders, most))


def _has_tail(path: str, offset: int, tail: str, reader: Reader) -> bool:
    """Return whether a text, in hexadecimal, ends at an offset of a file.

    Only the beginning of the file has an empty one before it.
    """
    size = len(tail) // 2
    if not 0 <= size <= offset or bool(size) != bool(offset):
        return False
    try:
        with open(path, "rb", buffering=0, opener=reader.opener) as file:
            return ReadPosition(offset, tail=bytes.fromhex(tail)).is_in(file)
    except OSError:
        return False


def _files(paths: Iterable[str], reader: Reader) -> Iterator[tuple[int, str, int]]:
    """Yield modification time, path and size of regular files."""
    for path in paths:
        try:
            status = reader.status(path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISREG(status.st_mode):
            yield status.st_mtime_ns, path, status.st_size


def _blocks_of(path: str, file: _LogFile, reader: Reader) -> Iterator[tuple[LineParser, bytes]]:
    with open(path, "rb", buffering=0, opener=reader.opener) as opened:
        for block, end in file.position.new_lines(opened):
            yield file.lines, block
            file.position.move(block, end)
