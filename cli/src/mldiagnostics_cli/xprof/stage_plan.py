"""The sessions of a bucket that a bounded cache keeps; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.layout import PROFILE_DIR, is_trace, session_of
from mldiagnostics.locations import is_bucket

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mldiagnostics.store import Entry

__all__ = [
    "CachedSession",
    "RemoteSession",
    "evictions",
    "has_plain_segments",
    "is_staged",
    "newest_that_fits",
    "sessions_of",
]

_MAX_SEGMENT_BYTES = 255


def is_staged(log_directory: str) -> bool:
    """Return whether XProf cannot read a log directory itself."""
    return is_bucket(log_directory) and not log_directory.startswith("gs://")


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A session in the bucket.

    Args:
        name: Its name in XProf: the path of the run, and the session.
        traces: Size of each trace by its key.
        modified: Time of the newest trace, in Unix seconds.
    """

    name: str
    traces: Mapping[str, int]
    modified: float

    @property
    def bytes(self) -> int:
        """The size of the traces."""
        return sum(self.traces.values())


@dataclass(frozen=True, slots=True)
class CachedSession:
    """A session in the cache.

    `bytes` has the files that XProf wrote too; `used` is the time of the last request.
    """

    name: str
    bytes: int
    used: float


def sessions_of(run: str, entries: Iterable[Entry]) -> list[RemoteSession]:
    """Return the sessions of a run.

    Args:
        run: Path of the run below the log directory; "" if it is the log directory.
        entries: Its files. Those that are not traces, and keys that are not paths, are ignored.
    """
    traces: dict[str, list[Entry]] = {}
    for entry in entries:
        session = session_of(entry.key) if is_trace(entry.key) and has_plain_segments(entry.key) else None
        if session is not None:
            traces.setdefault(session, []).append(entry)
    below = f"{run}/" if run else ""
    return [
        RemoteSession(
            f"{below}{session}",
            {each.key: each.bytes for each in files},
            max(each.modified.timestamp() for each in files),
        )
        for session, files in traces.items()
    ]


def newest_that_fits(sessions: Iterable[RemoteSession], limit: int) -> RemoteSession | None:
    """Return the newest session that fits into the cache.

    A larger one waits for a request, whose response names the limit.
    """
    fitting = [each for each in sessions if each.bytes <= limit]
    return max(fitting, key=lambda each: (each.modified, each.name), default=None)


def evictions(wanted: RemoteSession, cached: Iterable[CachedSession], limit: int) -> list[str]:
    """Return the sessions to delete before `wanted` is fetched.

    Those with the oldest use are first.

    Raises:
        ValueError: The session alone is larger than the cache.
    """
    if wanted.bytes > limit:
        raise ValueError(
            f"session {wanted.name}: has {wanted.bytes} bytes, the cache {limit}; make another server with --cache-size"
        )
    others = sorted((each for each in cached if each.name != wanted.name), key=lambda each: (each.used, each.name))
    excess = wanted.bytes + sum(each.bytes for each in others) - limit
    evicted = []
    for each in others:
        if excess <= 0:
            break
        evicted.append(each.name)
        excess -= each.bytes
    return evicted


def has_plain_segments(path: str) -> bool:
    """Return whether a key of a bucket is a path below a directory."""
    return all(
        segment not in {"", ".", ".."} and "\0" not in segment and len(segment.encode()) <= _MAX_SEGMENT_BYTES
        for segment in path.split("/")
    )


def directory_of(name: str) -> str:
    """Return the directory of a session below the log directory.

    >>> directory_of("runs/4f6c/slow")
    'runs/4f6c/plugins/profile/slow'
    """
    run, separator, session = name.rpartition("/")
    return f"{run}{separator}{PROFILE_DIR}/{session}"
