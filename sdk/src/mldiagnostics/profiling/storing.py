"""A trace into its run's directory, under the session's first name at which this process has no file yet."""

from __future__ import annotations

from itertools import count

from mldiagnostics.errors import AlreadyStored
from mldiagnostics.layout import retry_session, session_prefix, trace_key


def store_trace(directory: str, session: str, stem: str, trace: bytes) -> str:
    """Store `trace` below `directory`, a path or a URL, and return where.

    A file that is there is never touched: it is that of an earlier incarnation of this process, and so are its
    neighbours', so all hosts that were restarted together choose the same next name.

    Raises `StoreError`, `ConfigurationError` or `MissingExtraError`.
    """
    from mldiagnostics.store import open_store  # noqa: PLC0415 - stores are loaded when something is stored

    store = open_store(directory)
    for attempt in count(1):
        name = retry_session(session, attempt)
        key = trace_key(name, stem)
        if any(entry.key == key for entry in store.list(session_prefix(name))):  # cheaper than a put in vain
            continue
        try:
            return store.put(key, trace).url
        except AlreadyStored:
            continue
    raise AssertionError("unreachable: the numbers do not end")
