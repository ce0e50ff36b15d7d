"""Write what a forked child has recorded before SIGTERM ends it, as `multiprocessing.Pool.terminate()` does.

A child without a handler of its own dies of SIGTERM at once, with up to a second of records in memory. Once it has
recorded something, a thread hears of the signal through a pipe, writes the records, and lets the process die of the
signal as it would have. The main thread may be in native code meanwhile, as long as that lets other threads run.
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

__all__ = ["guard", "release"]

_pipe: tuple[int, int] | None = None


def guard(write: Callable[[], object]) -> bool:
    """Have `write` called before SIGTERM ends this process; false where that is somebody else's to decide.

    A handler of the program or of a library, and one that the program puts in later, stays as it is. So does a file
    for wake-ups that the program has set. Only the main thread can do this.
    """
    global _pipe  # noqa: PLW0603 - signals are the process's
    if _pipe is not None or threading.current_thread() is not threading.main_thread() or not _dies_of_sigterm():
        return False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if before != -1:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)
        return False
    _pipe = reader, writer
    signal.signal(signal.SIGTERM, _leave_to_thread)
    threading.Thread(target=_serve, args=(reader, write), name="mldiagnostics-forked-exit", daemon=True).start()
    return True


def release() -> None:
    """Give SIGTERM back, to somebody who takes it over; only the main thread can do this."""
    global _pipe
    pipe, _pipe = _pipe, None
    if pipe is None or threading.current_thread() is not threading.main_thread():
        return
    with suppress(ValueError, OSError):
        signal.set_wakeup_fd(-1)
        if signal.getsignal(signal.SIGTERM) is _leave_to_thread:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.close(pipe[1])  # the thread reads to the end and closes the other one


def _hold_back() -> None:
    """Keep SIGTERM pending while this process forks: the child would tell the pipe of its parent."""
    if _pipe is not None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_through() -> None:
    if _pipe is not None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _release_in_child() -> None:
    """Give SIGTERM back in a child of this one, which has no such thread."""
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
    """Do nothing: the system has told the thread already."""


def _serve(reader: int, write: Callable[[], object]) -> None:
    while numbers := os.read(reader, 64):
        if signal.SIGTERM in numbers and signal.getsignal(signal.SIGTERM) is _leave_to_thread:
            with suppress(Exception):  # whatever it is, the process ends
                write()
            _die()
    os.close(reader)


def _die() -> None:
    """End the process by SIGTERM. Python restores a signal in the main thread only, which may be in native code."""
    try:
        import ctypes  # noqa: PLC0415 - only at the end

        restore = ctypes.CDLL(None).signal
        restore.argtypes, restore.restype = (ctypes.c_int, ctypes.c_void_p), ctypes.c_void_p
        restore(signal.SIGTERM, None)
        os.kill(os.getpid(), signal.SIGTERM)
    except (ImportError, OSError, AttributeError):
        os._exit(128 + signal.SIGTERM)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold_back, after_in_parent=_let_through, after_in_child=_release_in_child)
