"""A file to which one process appends, and which others may delete or close."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_EXCL | os.O_CLOEXEC


class AppendedFile:
    """A file of whole batches.

    Example:
        file = AppendedFile()
        if not file.is_intact():
            file.create(Path("a.jsonl"))
        file.append(b"line")
    """

    def __init__(self) -> None:
        self.bytes = 0
        """Size of the file."""
        self._path = Path()
        self._descriptor = -1
        self._identity = (0, 0)

    def is_intact(self) -> bool:
        """Return whether it is open and was not deleted."""
        return bool(self._link_count())

    def create(self, path: Path) -> None:
        """Close the file before, and create one below directories that may be missing.

        Raises `OSError`.
        """
        self.close()
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor, self._path, self.bytes = os.open(path, _FLAGS, 0o666), path, 0
        status = os.fstat(self._descriptor)
        self._identity = status.st_dev, status.st_ino

    def append(self, data: bytes) -> None:
        """Append the data, or nothing. Raises `OSError`."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._remove_part()
            raise
        self.bytes += len(data)

    def close(self) -> None:
        """Close the descriptor, unless it belongs to another file by now."""
        if self._link_count() is not None:
            with suppress(OSError):
                os.close(self._descriptor)
        self._descriptor = -1

    def _remove_part(self) -> None:
        """Remove the part of a batch that a full disk wrote.

        A file that cannot be changed any more is left.
        """
        try:
            os.ftruncate(self._descriptor, self.bytes)
        except OSError:  # of a disk that failed, or became read-only
            if not self.bytes:  # each retry would leave an empty file
                with suppress(OSError):
                    self._path.unlink()
            self.close()

    def _link_count(self) -> int | None:
        """Return the file's link count; None if the descriptor is not the file's."""
        try:
            status = os.fstat(self._descriptor)
        except OSError:
            return None
        return status.st_nlink if (status.st_dev, status.st_ino) == self._identity else None
