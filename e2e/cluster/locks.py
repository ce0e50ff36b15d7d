"""Lock files that the kernel releases when their holder exits."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.progress import echo


@contextmanager
def exclusive(lock: Path, work: str) -> Iterator[None]:
    """Hold the lock while the block runs; `work` describes the work of another holder."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            echo(f"Waiting for another process: {work} ...")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
