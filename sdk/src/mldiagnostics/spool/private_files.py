"""Private files and directories below directories that other users can write."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO


def make_private(directory: Path) -> None:
    """Create a directory that no other user can read.

    Raises `OSError` if it belongs to another user.
    """
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(0, f"{directory} belongs to another user, or is not a directory")
    if stat.S_IMODE(status.st_mode) & 0o077:
        directory.chmod(0o700)


def require_own(path: Path) -> None:
    """Raise `PermissionError` if another user owns a path or can write it."""
    _require_own(path.lstat(), path)


def open_own(path: Path) -> BinaryIO:
    """Open a file that no other user can have created or changed. Raises `OSError`."""
    require_own(path.parent)
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb")
    try:
        _require_own(os.fstat(file.fileno()), path)
    except OSError:
        file.close()
        raise
    return file


def _require_own(status: os.stat_result, path: Path) -> None:
    if status.st_uid != os.getuid() or stat.S_ISLNK(status.st_mode) or status.st_mode & 0o022:
        raise PermissionError(f"{path}: other users can write it; remove it")
