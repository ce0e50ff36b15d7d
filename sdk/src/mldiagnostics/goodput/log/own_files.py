"""Files that only this user can have written, in directories that others may write too."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["open_own", "require_own"]


def require_own(path: Path) -> None:
    """Raise `PermissionError` unless the file or directory is this user's, who alone may write it."""
    _require_own(path.lstat(), path)


def open_own(path: Path) -> BinaryIO:
    """Open a file that no other user can have put there. Raises `OSError`."""
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
