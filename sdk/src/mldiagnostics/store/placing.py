"""How a finished file gets its name."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from typing import TYPE_CHECKING

from mldiagnostics.store.conditional import change_if
from mldiagnostics.store.source import PIECE_BYTES

if TYPE_CHECKING:
    from mldiagnostics.store.file_at import FileAt
    from mldiagnostics.store.model import Condition
    from mldiagnostics.store.source import UploadSource

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}


def put_in_place(partial: FileAt, file: FileAt, accept: Condition, source: UploadSource) -> bool:
    """Give the finished file its name, or the place of a file that is accepted.

    Return false if a file with other content has the name.
    """
    while not _link_into_place(partial, file):
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            return change_if(file, accept, lambda: partial.replace(file)) or _holds(file, source)
    return True


def _link_into_place(partial: FileAt, file: FileAt) -> bool:
    """Give the finished file its name; false if that is taken. Atomic with hard links."""
    try:
        partial.link_to(file)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _reserve_and_rename(partial, file)
    return True


def _reserve_and_rename(partial: FileAt, file: FileAt) -> bool:
    """Replace hard links (FAT, many FUSE file systems): reserve the name, then rename."""
    try:
        os.close(file.open(os.O_WRONLY | os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    try:
        partial.replace(file)
    except OSError:
        file.unlink()
        raise
    return True


def _holds(file: FileAt, source: UploadSource) -> bool:
    """Return whether the file has the same content as the source."""
    status = file.status()
    if not stat.S_ISREG(status.st_mode) or status.st_size != source.bytes:
        return False
    with os.fdopen(file.open(os.O_RDONLY), "rb") as stored:
        digest = hashlib.sha256()
        while piece := stored.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == source.sha256()
