"""Leave the exit status of this process in a file, and read that of another one.

Python gives exit handlers no status. The C library calls the functions of `on_exit` with it, but after Python has
ended, so only a function of the library itself can store it: `fputc(status, file)` writes it as one byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import exit_status_key
from mldiagnostics.lifecycle.outcome import EXIT_CODE_UNKNOWN, outcome_of_status
from mldiagnostics.locations import local_path
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.outcome import RunOutcome


def leave_exit_status(directory: str, incarnation: str) -> bool:
    """Let the C library write the status of this process when it ends.

    It is written into the directory of the run. Return whether it will be: not for a run in a bucket, and not with
    another C library than that of GNU.
    """
    path = local_path(directory)
    if path is None:
        return False
    try:
        import ctypes  # noqa: PLC0415 - only for programs whose status is unknown

        library = ctypes.CDLL(None)
        on_exit, fputc, fopen = library.on_exit, library.fputc, library.fopen
        fopen.restype, on_exit.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)
        file = fopen(str(path / exit_status_key(incarnation)).encode(), b"wbe")
        return file is not None and on_exit(ctypes.cast(fputc, ctypes.c_void_p), file) == 0
    except (ImportError, OSError, AttributeError, ValueError):
        return False


def outcome_left(directory: str, incarnation: str, reason: str) -> RunOutcome | None:
    """Return the outcome of a process by the status that it has left, if any.

    Args:
        directory: Directory of its run, a path or URL.
        incarnation: Incarnation of the process.
        reason: Reason of its recorded outcome; only one lacks the status.
    """
    if reason != EXIT_CODE_UNKNOWN or local_path(directory) is None:
        return None
    try:
        with open_store(directory).open(exit_status_key(incarnation)) as file:
            status = file.read(1)
    except (MLDiagnosticsError, OSError):
        return None
    return outcome_of_status(status[0]) if status else None
