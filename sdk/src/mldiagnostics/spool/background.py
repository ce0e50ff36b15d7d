"""Uploads of what dead processes left, by a thread of its own that the program does not wait for."""

from __future__ import annotations

import atexit
import os
import threading
import time

from mldiagnostics.diagnostics import LOGGER, warn_once
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.spool.directory import abandoned
from mldiagnostics.spool.places import has_any
from mldiagnostics.spool.uploading import Stopped, upload_all
from mldiagnostics.store import open_store

EXIT_S = 2.0
"""How long the end of the process waits for uploads under way; what is left is the next process's."""

_STOP_S = 1.0

_lock = threading.Lock()
_threads: dict[str, threading.Thread] = {}
_again: set[str] = set()
"""Destinations whose directories are to be looked through once more."""

_ending = False


def begin(destination: str) -> None:
    """Upload what waits for a destination that works, in the background; does nothing if nothing waits."""
    if _ending or not has_any(destination):
        return
    with _lock:
        thread = _threads.get(destination)
        if thread is not None and thread.is_alive():
            _again.add(destination)  # what another part of this process held is free by now
            return
        thread = threading.Thread(target=_upload, args=[destination], name="mldiagnostics-upload", daemon=True)
        _threads[destination] = thread
        try:
            thread.start()
        except RuntimeError:  # the interpreter is shutting down, or has no more threads
            del _threads[destination]


def upload_run_record(destination: str, key: str) -> None:
    """Bring the copies of one run.json that wait for a destination into it, at once.

    Raises `StoreError`, `ConfigurationError` or `MissingExtraError`.
    """
    if has_any(destination):
        store = open_store(destination)
        for directory in abandoned(destination, key=key):
            try:
                upload_all(directory, store, only=lambda found: found == key)
            finally:
                directory.remove_or_leave()


def _upload(destination: str) -> None:
    files = 0
    try:
        store = open_store(destination)
        while True:
            for directory in abandoned(destination):
                try:
                    files += upload_all(directory, store, stopped=lambda: _ending).files
                finally:
                    directory.remove_or_leave()
            if _is_done(destination):
                break
    except Stopped:
        pass
    except MLDiagnosticsError as error:
        warn_once("spool-upload", f"what waits on the local disk is not uploaded now: {error}")
    except Exception as error:  # noqa: BLE001 - a thread that nobody watches
        warn_once("spool-upload", f"what waits on the local disk is not uploaded now: {error!r}")
    if files:
        LOGGER.info("uploaded %d files of earlier processes to %s", files, destination)


def _is_done(destination: str) -> bool:
    """Tell whether nothing was begun since the last look; if so, the thread counts as ended."""
    with _lock:
        if destination in _again:
            _again.discard(destination)
            return False
        _threads.pop(destination, None)
        return True


def _end() -> None:
    """Let uploads end, for a moment; then have them stop between two pieces of a file."""
    global _ending  # noqa: PLW0603 - the process ends once
    deadline = time.monotonic() + EXIT_S
    for thread in tuple(_threads.values()):
        thread.join(max(0.0, deadline - time.monotonic()))
    _ending = True
    for thread in tuple(_threads.values()):
        thread.join(_STOP_S)


def _begin_anew() -> None:
    """Know of no threads in a forked child: they stayed with the parent."""
    global _lock  # noqa: PLW0603 - another thread of the parent may hold the old one, for ever
    _lock = threading.Lock()
    _threads.clear()
    _again.clear()


atexit.register(_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
