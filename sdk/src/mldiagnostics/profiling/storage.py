"""A trace into its run's storage, under the session's first name at which this process has no file yet."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from mldiagnostics.errors import AlreadyStored
from mldiagnostics.layout import retry_session, session_prefix, trace_key
from mldiagnostics.profiling.naming import host_stem

if TYPE_CHECKING:
    from mldiagnostics.run import MLRun
    from mldiagnostics.spool.storage import StoredFile
    from mldiagnostics.store import Store


def keep_trace(run: MLRun, session: str, trace: bytes) -> StoredFile:
    """Store a trace of this process in the run's storage, or in the spool while that takes nothing; return where.

    Raises:
        StoreError: Neither of the two has room for it.
        SpoolFull: Too much waits in the spool already.
    """
    stem, folder = host_stem(run.origin), run.origin.run_id
    return run.files.store(
        spooled_key(run, session), lambda: trace, lambda store: store_trace(store, folder, session, stem, trace)
    )


def spool_trace(run: MLRun, session: str, trace: bytes, problem: str) -> StoredFile:
    """Keep a trace in the spool, since the storage has not taken it. Raises as `keep_trace` does."""
    return run.files.spool(spooled_key(run, session), trace, problem)


def spooled_key(run: MLRun, session: str) -> str:
    """Return the key below the storage at which this process's trace of a session waits in the spool."""
    return f"{run.origin.run_id}/{trace_key(session, host_stem(run.origin))}"


def store_trace(store: Store, folder: str, session: str, stem: str, trace: bytes) -> str:
    """Store `trace` below `folder` of a store, and return its path or URL.

    A file that is there is never touched: it is that of an earlier incarnation of this process, and so are its
    neighbours', so all hosts that were restarted together choose the same next name.

    Raises `StoreError`.
    """
    inside = f"{folder}/" if folder else ""
    for attempt in count(1):
        name = retry_session(session, attempt)
        key = f"{inside}{trace_key(name, stem)}"
        if any(entry.key == key for entry in store.list(f"{inside}{session_prefix(name)}")):  # cheaper than a put
            continue
        try:
            return store.put(key, trace).url
        except AlreadyStored:
            continue
    raise AssertionError("unreachable: the numbers do not end")
