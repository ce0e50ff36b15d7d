"""One process at a time: a lock file that the kernel releases when its holder ends, however it ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.progress import say


@contextmanager
def exclusive(lock: Path, work: str) -> Iterator[None]:
    """Hold the lock file for the block; `work` tells the user what another holder is doing meanwhile."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process: {work} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
