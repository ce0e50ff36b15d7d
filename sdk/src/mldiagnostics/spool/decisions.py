"""Decisions about the spool: places, directory names, files to upload; pure.

`<root>/<destination>/<incarnation>[-<part>]/` holds the files of one process for one destination: `spool.json` names
the destination and the process, `files/` has each file at the path of its key in the destination.
"""

from __future__ import annotations

import re
from binascii import crc32
from typing import TYPE_CHECKING

from mldiagnostics.layout import RUN_RECORD, is_trace, retry_session
from mldiagnostics.locations import path_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_SPOOL_BYTES = 4 * 1024**3
"""Size limit of a user's whole spool; further records are dropped and counted."""

MAX_PROCESS_BYTES = 256 * 1024**2
"""Size limit of one process's files of records in the spool."""

MAX_WAITING_BYTES = 64 * 1024**2
"""Size limit of the records that wait for a sink; further ones are dropped and counted."""

MAX_AGE_S = 30 * 24 * 3600.0
"""How long the spool keeps files that no process uploads."""

RETRY_CREDENTIALS_S = 60.0
"""Time for which missing credentials count as missing: a new search can take 10 s."""

MAX_NAMES = 100
"""Number of session names that are tried for a trace whose own name is taken."""

_MAX_READABLE = 60


def candidates(env: Mapping[str, str], *, user: int) -> list[str]:
    """Return the directories that can hold the spool, the preferred one first.

    Args:
        env: The environment; `MLDIAG_SPOOL`, `XDG_STATE_HOME`, `HOME` and `TMPDIR` are read.
        user: The user id, part of the name in a directory that all users share.
    """
    home = env.get("HOME", "")
    state = env.get("XDG_STATE_HOME") or (f"{home.rstrip('/')}/.local/state" if home else "")
    paths = [env.get("MLDIAG_SPOOL") or ""]
    if state.startswith("/"):  # as the XDG specification demands
        paths.append(f"{state.rstrip('/')}/mldiagnostics/spool")
    paths.append(f"{temporary_folder(env)}/mldiagnostics-{user}")
    return list(dict.fromkeys(path for path in paths if path))


def temporary_folder(env: Mapping[str, str]) -> str:
    """Return the system's directory for temporary files.

    Does not use `tempfile`: a forked child could wait for its lock for ever.
    """
    return (env.get("TMPDIR") or "/tmp").rstrip("/")  # noqa: S108 - only the name; `creation` makes it private


def normalized(destination: str) -> str:
    """Return the one form of a destination: no trailing slash, file URLs as paths.

    Other URLs only lose a trailing slash.
    """
    path = path_of(destination)
    if path is not None and path.startswith("/"):
        return re.sub(r"/{2,}", "/", path).rstrip("/") or "/"
    return destination.rstrip("/")


def folder_of(destination: str, *, user: int) -> str:
    """Return a destination's directory name in the spool, unique for each user."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", destination)[-_MAX_READABLE:].strip("-.")
    return f"{readable or 'root'}-{crc32(f'{user} {destination}'.encode('utf-8', 'surrogatepass')):08x}"


def upload_order(keys: Iterable[str]) -> list[str]:
    """Return the keys that can be uploaded, run.json first and traces last.

    Left out are files that are still being written, and names that a store rejects as keys.
    """
    return sorted((key for key in keys if _is_uploadable(key)), key=lambda key: (_weight(key), key))


def names_for(key: str) -> Iterable[str]:
    """Yield the keys under which a file may be stored, in the order to try them.

    If a trace's name is taken, by an earlier incarnation of its process, it gets the session's next name, as it would
    have without the spool. All other files have unique names.
    """
    yield key
    if is_trace(key):
        head, session, stem = key.rsplit("/", 2)
        for attempt in range(2, MAX_NAMES):
            yield f"{head}/{retry_session(session, attempt)}/{stem}"


def is_run_record(key: str) -> bool:
    """Return whether a key is a run.json, which is merged with the stored one."""
    return key.rpartition("/")[2] == RUN_RECORD


def is_expired(changed: float, now: float) -> bool:
    """Return whether a file changed at `changed` (Unix seconds) is too old to keep."""
    return now - changed > MAX_AGE_S


def _is_uploadable(key: str) -> bool:
    parts = key.split("/")
    return not any(not part or part.startswith(".") for part in parts) and not any(sign in key for sign in "\0\r\n")


def _weight(key: str) -> int:
    return 0 if is_run_record(key) else 2 if is_trace(key) else 1
