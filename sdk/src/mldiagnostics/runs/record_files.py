"""Files of records of one run, on the local disk or in a store."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol

from mldiagnostics.errors import NotStored, StoreForbidden
from mldiagnostics.layout import RECORDS_DIR, RecordSegment, record_segment
from mldiagnostics.locations import local_path
from mldiagnostics.store import open_store
from mldiagnostics.store.local import store_error
from mldiagnostics.store.shared import Reader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.store import Store


_PARALLEL_READS = 8
"""Objects in memory at a time; the SDK writes at most 8 MiB into each."""


class RecordFile(NamedTuple):
    """A file as it was listed; sorts by process, then by number."""

    segment: RecordSegment
    key: str
    size: int
    """In bytes."""
    modified: float
    """In Unix seconds."""
    signature: tuple[object, ...]
    """Differs if the file was replaced by another one of its name."""


class RecordFiles(Protocol):
    """The files of records below the directory of a run."""

    grows: bool
    """Whether a file may get longer; objects in a store never do."""

    def list(self) -> list[RecordFile]:
        """Return the files, sorted; an empty list if there is no such directory.

        Raises `StoreError`.
        """

    def open(self, files: Sequence[RecordFile]) -> Iterator[tuple[RecordFile, BinaryIO]]:
        """Yield open files, which the caller closes; files that are gone are left out.

        Raises `StoreError`.
        """


def record_files(directory: str) -> RecordFiles:
    """Return the files of records of the run in a directory, a path or URL.

    Nothing is read yet. Raises `ConfigurationError` for other URLs, and `MissingExtraError` for a bucket without its
    extra.
    """
    path = local_path(directory)
    return StoredRecordFiles(open_store(directory)) if path is None else LocalRecordFiles(str(path))


class LocalRecordFiles:
    """Files on the local disk, to which processes append."""

    grows = True

    def __init__(self, directory: str) -> None:
        self._directory = os.path.join(directory, RECORDS_DIR)  # noqa: PTH118 - paths as text cost less
        self._reader = Reader(directory)

    def list(self) -> list[RecordFile]:
        """See `RecordFiles.list`. Links are not followed."""
        if os.path.islink(self._directory):  # noqa: PTH114 - as above
            raise StoreForbidden(f"{self._directory}: is a link, which may lead out of the run; remove it")
        files = []
        try:
            with self._reader.scan(self._directory) as entries:
                for entry in entries:
                    segment = record_segment(f"{RECORDS_DIR}/{entry.name}")
                    if segment is None or not entry.is_file(follow_symlinks=False):
                        continue
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    signature = (status.st_dev, status.st_ino)
                    path = os.path.join(self._directory, entry.name)  # noqa: PTH118 - as above
                    files.append(RecordFile(segment, path, status.st_size, status.st_mtime, signature))
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise store_error(error, self._directory) from error
        return sorted(files)

    def open(self, files: Sequence[RecordFile]) -> Iterator[tuple[RecordFile, BinaryIO]]:
        """See `RecordFiles.open`."""
        for file in files:
            try:
                opened = open(  # noqa: SIM115 - as above; the caller closes it
                    file.key, "rb", buffering=0, opener=self._reader.opener
                )
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise store_error(error, file.key) from error
            yield file, opened


class StoredRecordFiles:
    """Whole objects in a store, several read at a time."""

    grows = False

    def __init__(self, store: Store) -> None:
        self._store = store

    def list(self) -> list[RecordFile]:
        """See `RecordFiles.list`."""
        files = []
        for entry in self._store.list(RECORDS_DIR):
            if (segment := record_segment(entry.key)) is not None:
                modified = entry.modified.timestamp()
                files.append(RecordFile(segment, entry.key, entry.bytes, modified, (entry.bytes, modified)))
        return sorted(files)

    def open(self, files: Sequence[RecordFile]) -> Iterator[tuple[RecordFile, BinaryIO]]:
        """See `RecordFiles.open`."""
        with ThreadPoolExecutor(_PARALLEL_READS, thread_name_prefix="mldiagnostics-records") as readers:
            for start in range(0, len(files), _PARALLEL_READS):
                batch = files[start : start + _PARALLEL_READS]
                for file, content in zip(batch, readers.map(self._read, batch), strict=True):
                    if content is not None:
                        yield file, BytesIO(content)

    def _read(self, file: RecordFile) -> bytes | None:
        try:
            with self._store.open(file.key) as opened:
                return opened.read()
        except NotStored:
            return None
