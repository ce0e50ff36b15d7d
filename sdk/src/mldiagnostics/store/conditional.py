"""Changes of a local file on a condition, serialised between processes."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreUnreachable
from mldiagnostics.store.model import HEAD_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mldiagnostics.store.file_at import FileAt
    from mldiagnostics.store.model import Condition

_LOCK_TIMEOUT_S = 10.0
_LOCK_POLL_S = 0.02

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}


def change_if(file: FileAt, accept: Condition, change: Callable[[], object]) -> bool:
    """Replace or remove a file if its content is accepted; return whether it was.

    The file is locked from the condition to the end of the change. A link, a directory and a device are never accepted.

    Raises:
        FileNotFoundError: There is no file.
        StoreUnreachable: Another process keeps the lock.
    """
    while True:
        if not _accepted(file, accept):
            return False
        # Only files that are accepted are opened for writing: locks on network file systems need it.
        with _opened(file, os.O_RDWR) as descriptor:
            _lock(descriptor, file)
            if not _is_at(file, descriptor):
                continue  # another process changed the name before this one had the lock
            if not accept(os.pread(descriptor, HEAD_BYTES, 0)):
                return False
            change()
            return True


def _accepted(file: FileAt, accept: Condition) -> bool:
    if not stat.S_ISREG(file.status().st_mode):
        return False
    with _opened(file, os.O_RDONLY) as descriptor:
        return accept(os.pread(descriptor, HEAD_BYTES, 0))


@contextlib.contextmanager
def _opened(file: FileAt, mode: int) -> Iterator[int]:
    descriptor = file.open(mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _lock(descriptor: int, file: FileAt) -> None:
    """Lock a file until it is closed."""
    until = time.monotonic() + _LOCK_TIMEOUT_S
    while not _try_lock(descriptor):
        if time.monotonic() > until:
            raise StoreUnreachable(f"{file.name}: another process keeps its lock; try again later")
        time.sleep(_LOCK_POLL_S)


def _try_lock(descriptor: int) -> bool:
    """Return whether the file is locked; some file systems have no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _is_at(file: FileAt, descriptor: int) -> bool:
    """Return whether the open file still has its name."""
    return os.path.samestat(os.fstat(descriptor), file.status())
