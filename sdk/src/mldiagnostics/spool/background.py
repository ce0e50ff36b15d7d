"""Background upload of the files of ended processes."""

from __future__ import annotations

import atexit
import os
import threading
import time

from mldiagnostics.diagnostics import LOGGER, warn_once
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.spool.directory import abandoned_directories
from mldiagnostics.spool.places import has_any
from mldiagnostics.spool.uploading import UploadStopped, upload_all
from mldiagnostics.store import open_store

EXIT_S = 2.0
"""How long the exit of the process waits for uploads; the next process uploads the rest."""

_STOP_S = 1.0

_lock = threading.Lock()
_threads: dict[str, threading.Thread] = {}
_again: set[str] = set()
"""Destinations whose directories have to be listed once more."""

_stopping = False


def start_upload(destination: str) -> None:
    """Upload a destination's waiting files in the background, if there are any."""
    if _stopping or not has_any(destination):
        return
    with _lock:
        thread = _threads.get(destination)
        if thread is not None and thread.is_alive():
            _again.add(destination)  # another part of this process may have released a directory since
            return
        thread = threading.Thread(target=_upload, args=[destination], name="mldiagnostics-upload", daemon=True)
        _threads[destination] = thread
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down, or cannot start more threads
            del _threads[destination]


def upload_run_record(destination: str, key: str) -> None:
    """Upload the waiting copies of one run.json, and return when that is done.

    The other files beside them follow in the background.

    Raises `StoreError`, `ConfigurationError` or `MissingExtraError`.
    """
    if not has_any(destination):
        return
    store, has_locked = open_store(destination), False
    for directory in abandoned_directories(destination, key=key):
        has_locked = True
        try:
            upload_all(directory, store, only=lambda waiting: waiting == key)
        finally:
            directory.remove_or_release()
    if has_locked:  # another upload that listed meanwhile has passed by these directories
        start_upload(destination)


def _upload(destination: str) -> None:
    files = 0
    try:
        store = open_store(destination)
        while True:
            for directory in abandoned_directories(destination):
                try:
                    files += upload_all(directory, store, stopped=lambda: _stopping).files
                finally:
                    directory.remove_or_release()
            if _is_done(destination):
                break
    except UploadStopped:
        pass
    except MLDiagnosticsError as error:
        _warn(destination, str(error))
    except Exception as error:  # noqa: BLE001 - an exception in this thread would be lost
        _warn(destination, repr(error))
    if files:
        LOGGER.info("uploaded %d files of earlier processes to %s", files, destination)


def _warn(destination: str, problem: str) -> None:
    warn_once(
        "spool-upload",
        f"{destination}: files that wait on the local disk were not uploaded: {problem}; the next process on this "
        "machine tries again, or run: python -m mldiagnostics.upload",
    )


def _is_done(destination: str) -> bool:
    """Return whether no further upload was requested; the thread ends then."""
    with _lock:
        if destination in _again:
            _again.discard(destination)
            return False
        _threads.pop(destination, None)
        return True


def _stop() -> None:
    """Wait up to `EXIT_S` for uploads, then stop them between two pieces of a file."""
    global _stopping  # noqa: PLW0603 - set once, at the exit of the process
    deadline = time.monotonic() + EXIT_S
    for thread in tuple(_threads.values()):
        thread.join(max(0.0, deadline - time.monotonic()))
    _stopping = True
    for thread in tuple(_threads.values()):
        thread.join(_STOP_S)


def _after_fork() -> None:
    """Forget the parent's threads, which do not exist in a forked child."""
    global _lock  # noqa: PLW0603 - another thread of the parent may hold the old lock for ever
    _lock = threading.Lock()
    _threads.clear()
    _again.clear()


atexit.register(_stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
