"""Write the records of a child process before SIGTERM ends it.

A child without a handler of its own dies of SIGTERM at once, with up to a second of records in memory. After its first
record, a thread receives the signal through a pipe, writes the records, and lets the process die of the signal. The
main thread may be in native code, as long as that lets other threads run.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType


_pipe: tuple[int, int] | None = None
_writers: list[Callable[[], object]] = []


def guard(write: Callable[[], object]) -> bool:
    """Call `write`, before earlier ones, when SIGTERM ends this process.

    Return whether that was installed.

    Handlers of the program or of a library stay in place, also those installed later, as does a wakeup file descriptor
    of the program. Only the main thread can install it.
    """
    global _pipe
    if _pipe is not None:
        _writers.insert(0, write)
        return True
    if threading.current_thread() is not threading.main_thread() or not _dies_of_sigterm():
        return False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if previous != -1:
        signal.set_wakeup_fd(previous)
        os.close(reader)
        os.close(writer)
        return False
    _pipe, _writers[:] = (reader, writer), [write]
    signal.signal(signal.SIGTERM, _leave_to_thread)
    threading.Thread(target=_serve, args=(reader,), name="mldiagnostics-forked-exit", daemon=True).start()
    return True


def release() -> None:
    """Restore SIGTERM for another handler; only the main thread can do this."""
    global _pipe
    pipe, _pipe = _pipe, None
    if pipe is None or threading.current_thread() is not threading.main_thread():
        return
    with suppress(ValueError, OSError):
        signal.set_wakeup_fd(-1)
        if signal.getsignal(signal.SIGTERM) is _leave_to_thread:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(pipe[1])  # the thread reads to the end and closes the other one


def _block_sigterm() -> None:
    """Keep SIGTERM pending while this process forks.

    The child would write to its parent's pipe.
    """
    if _pipe is not None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _unblock_sigterm() -> None:
    if _pipe is not None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _release_in_child() -> None:
    """Restore SIGTERM in a child of this process, which has no such thread."""
    pipe = _pipe
    if pipe is not None:
        release()
        with suppress(OSError):
            os.close(pipe[0])
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _dies_of_sigterm() -> bool:
    from mldiagnostics.identity.environment import has_native_handler  # noqa: PLC0415 - in children that record

    return signal.getsignal(signal.SIGTERM) == signal.SIG_DFL and not has_native_handler()


def _leave_to_thread(number: int, frame: FrameType | None) -> None:
    """Do nothing: the thread reads the signal from the pipe."""


def _serve(reader: int) -> None:
    while numbers := os.read(reader, 64):
        if signal.SIGTERM in numbers and signal.getsignal(signal.SIGTERM) is _leave_to_thread:
            for write in _writers:
                with suppress(Exception):  # the process ends in any case
                    write()
            _die()
    os.close(reader)


def _die() -> None:
    """End the process by SIGTERM.

    Python restores handlers only in the main thread, which may be busy.
    """
    try:
        import ctypes  # noqa: PLC0415 - only at the end

        restore = ctypes.CDLL(None).signal
        restore.argtypes, restore.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        restore(signal.SIGTERM, None)
        os.kill(os.getpid(), signal.SIGTERM)
    except (ImportError, OSError, AttributeError):
        os._exit(128 + signal.SIGTERM)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_block_sigterm, after_in_parent=_unblock_sigterm, after_in_child=_release_in_child)
