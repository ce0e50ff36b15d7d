"""Files by a name in an open directory."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.store.tree import open_directory

if TYPE_CHECKING:
    from pathlib import Path

_CREATE_TRIES = 100
_MODE = 0o666  # less the umask


@dataclass(frozen=True, slots=True)
class FileAt:
    """A name in an open directory.

    The directory itself may be moved or replaced meanwhile. A link is never followed.
    """

    directory: int
    """Descriptor of the directory."""
    name: str

    def open(self, flags: int) -> int:
        """Return a descriptor of the file; a pipe never blocks."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, _MODE, dir_fd=self.directory)

    def status(self) -> os.stat_result:
        """Return the status of the file, or of the link."""
        return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)

    def unlink(self) -> None:
        """Remove the name."""
        os.unlink(self.name, dir_fd=self.directory)

    def replace(self, other: FileAt) -> None:
        """Give the file the name of another one, which ends."""
        os.replace(self.name, other.name, src_dir_fd=self.directory, dst_dir_fd=other.directory)

    def link_to(self, other: FileAt) -> None:
        """Give the file a second name.

        Raises:
            FileExistsError: The name is taken.
        """
        os.link(self.name, other.name, src_dir_fd=self.directory, dst_dir_fd=other.directory, follow_symlinks=False)


def create_file(root: Path, directory: str, name: str) -> tuple[FileAt, int]:
    """Create a file and its directory, which a delete may remove while it is empty.

    Returns:
        The name, whose directory the caller closes, and a descriptor to write the file.

    Raises:
        FileExistsError: The name is taken.
    """
    for _ in range(_CREATE_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return _created(root, directory, name)
    return _created(root, directory, name)


def _created(root: Path, directory: str, name: str) -> tuple[FileAt, int]:
    file = FileAt(open_directory(root, directory, create=True), name)
    try:
        return file, file.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except BaseException:
        os.close(file.directory)
        raise
