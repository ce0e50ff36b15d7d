"""Storage of traces under the first name of their session that is free."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from mldiagnostics.errors import AlreadyStored
from mldiagnostics.layout import retry_session, session_prefix, trace_key
from mldiagnostics.profiling.naming import host_stem

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.current_run import CurrentRun
    from mldiagnostics.spool.storage import StoredFile
    from mldiagnostics.store import Store


def store_run_trace(run: CurrentRun, session: str, trace: bytes) -> StoredFile:
    """Store a trace of this process in the run's storage, or in the spool.

    Raises:
        StoreError: Both failed.
        SpoolFull: The spool is full.
    """
    stem, folder = host_stem(run.origin), run.origin.run_id
    return run.files.store(
        spooled_key(run, session), lambda: trace, lambda store: store_trace(store, folder, session, stem, trace)
    )


def spool_trace(run: CurrentRun, session: str, trace: bytes, problem: str) -> StoredFile:
    """Write a trace to the spool because of `problem`. Raises as `store_run_trace`."""
    return run.files.spool(spooled_key(run, session), trace, problem)


def spooled_key(run: CurrentRun, session: str) -> str:
    """Return the key of this process's trace of a session in the spool."""
    return f"{run.origin.run_id}/{trace_key(session, host_stem(run.origin))}"


def store_trace(store: Store, folder: str, session: str, stem: str, trace: bytes) -> str:
    """Store `trace` below `folder` of a store and return its path or URL.

    An existing file is never overwritten: it is of an earlier incarnation. Its hosts have one too, so all hosts that
    were restarted together choose the same next name.

    Raises `StoreError`.
    """
    prefix = f"{folder}/" if folder else ""
    for attempt in count(1):
        name = retry_session(session, attempt)
        key = f"{prefix}{trace_key(name, stem)}"
        if any(entry.key == key for entry in store.list(f"{prefix}{session_prefix(name)}")):  # cheaper than a put
            continue
        try:
            return store.put(key, trace).url
        except AlreadyStored:
            continue
    raise AssertionError("unreachable: the loop does not end")
