"""A slow disk for Python programs: each file that is written, renamed or removed takes some milliseconds longer.

Python imports this module at its start if the folder is on PYTHONPATH. The disks of a kernel need a module of it.
"""

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import HasFileno

DELAY_S = 0.005
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR


def delay(event: str, arguments: tuple[object, ...]) -> None:
    """Wait before a change of a file."""
    is_write = event == "open" and isinstance(flags := arguments[2], int) and flags & WRITES
    if is_write or event in CHANGES:
        time.sleep(DELAY_S)


def slow_sync(fd: "int | HasFileno") -> None:
    """Write a file to the disk, slowly; no audit event announces it."""
    time.sleep(10 * DELAY_S)
    sync(fd)


sync, os.fsync = os.fsync, slow_sync
sys.addaudithook(delay)
