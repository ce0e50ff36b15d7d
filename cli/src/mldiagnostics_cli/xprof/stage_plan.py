"""The sessions that a directory for XProf shows; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.layout import PROFILE_DIR, is_trace, session_of
from mldiagnostics.locations import is_bucket
from mldiagnostics.runs.session_cache import StoredSession, has_plain_segments

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.store import Entry, Store


def is_staged(log_directory: str) -> bool:
    """Return whether XProf cannot read a log directory itself."""
    return is_bucket(log_directory) and not log_directory.startswith("gs://")


def sessions_of(run: str, entries: Iterable[Entry], store: Store) -> list[StoredSession]:
    """Return the sessions of a run, named by its path and their own names.

    Args:
        run: Path of the run below the log directory; "" if it is the log directory.
        entries: Its files. Those that are not traces, and keys that are not paths, are ignored.
        store: The store of the files.
    """
    traces: dict[str, list[Entry]] = {}
    for entry in entries:
        session = session_of(entry.key) if is_trace(entry.key) and has_plain_segments(entry.key) else None
        if session is not None:
            traces.setdefault(session, []).append(entry)
    below = f"{run}/" if run else ""
    return [StoredSession.of(f"{below}{session}", files, store) for session, files in traces.items()]


def newest_that_fits(sessions: Iterable[StoredSession], limit: int) -> StoredSession | None:
    """Return the newest session that fits into the cache.

    A larger one waits for a request, whose response names the limit.
    """
    fitting = [each for each in sessions if each.bytes <= limit]
    return max(fitting, key=lambda each: (each.modified, each.name), default=None)


def directory_of(name: str) -> str:
    """Return the directory of a session below the log directory.

    >>> directory_of("runs/4f6c/slow")
    'runs/4f6c/plugins/profile/slow'
    """
    run, separator, session = name.rpartition("/")
    return f"{run}{separator}{PROFILE_DIR}/{session}"
