"""Decisions about the spool: where it can be, how its directories are named, what is uploaded and as what; pure.

`<root>/<destination>/<incarnation>[-<part>]/` holds what one process keeps for one destination: `spool.json` says for
which and whose it is, `files/` has each file at the path of its key in the destination.
"""

from __future__ import annotations

import re
from binascii import crc32
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from mldiagnostics.layout import RUN_RECORD, is_trace, retry_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_SPOOL_BYTES = 4 * 1024**3
"""How much a user's whole spool may hold; what comes then is dropped and counted."""

MAX_PROCESS_BYTES = 256 * 1024**2
"""How much the records of one process may hold in it."""

MAX_AGE_S = 30 * 24 * 3600.0
"""How long the spool keeps what no process uploads."""

RETRY_CREDENTIALS_S = 60.0
"""How long missing credentials count as missing: to look for them again can take 10 s."""

MAX_NAMES = 100
"""How many names of sessions are tried for a trace whose own name is taken."""

_MAX_READABLE = 60


def candidates(env: Mapping[str, str], *, user: int) -> list[str]:
    """Return the directories where the spool can be, the preferred one first.

    Args:
        env: The environment; `MLDIAG_SPOOL`, `XDG_STATE_HOME`, `HOME` and `TMPDIR` count.
        user: The user id, part of the name in a directory that all users share.
    """
    home = env.get("HOME", "")
    state = env.get("XDG_STATE_HOME") or (f"{home.rstrip('/')}/.local/state" if home else "")
    found = [env.get("MLDIAG_SPOOL") or ""]
    if state.startswith("/"):  # as the XDG specification demands
        found.append(f"{state.rstrip('/')}/mldiagnostics/spool")
    found.append(f"{temporary_folder(env)}/mldiagnostics-{user}")
    return list(dict.fromkeys(path for path in found if path))


def temporary_folder(env: Mapping[str, str]) -> str:
    """Return the system's directory for temporary files.

    Not by `tempfile`, whose lock a forked child could find taken for ever.
    """
    return (env.get("TMPDIR") or "/tmp").rstrip("/")  # noqa: S108 - only the name; `directory` sees to the rest


def normalized(destination: str) -> str:
    """Return one form for all ways to write a destination: paths from the root, no trailing slash.

    What is not a path or a file URL stays as it is.
    """
    scheme, separator, rest = destination.partition("://")
    if scheme == "file" and separator and rest.startswith("/"):
        destination, separator = unquote(urlsplit(destination).path), ""
    if not separator and destination.startswith("/"):
        return re.sub(r"/{2,}", "/", destination).rstrip("/") or "/"
    return destination.rstrip("/")


def folder_of(destination: str, *, user: int) -> str:
    """Return the name of a destination's directory in the spool; users who share a spool have different ones."""
    readable = re.sub(r"[^A-Za-z0-9.]+", "-", destination)[-_MAX_READABLE:].strip("-.")
    return f"{readable or 'root'}-{crc32(f'{user} {destination}'.encode('utf-8', 'surrogatepass')):08x}"


def upload_order(keys: Iterable[str]) -> list[str]:
    """Return the keys that may be uploaded in the order in which to do so: what is small and shows the run first.

    Left out are names of files that are still being written and whatever a store would not take as a key.
    """
    return sorted((key for key in keys if _is_uploadable(key)), key=lambda key: (_weight(key), key))


def names_for(key: str) -> Iterable[str]:
    """Return the keys under which a file may be stored, in the order to try; a taken one is never overwritten.

    A trace whose name is taken belongs to an earlier incarnation of its process and gets the session's next name, as it
    would have without the spool. All other files have names of their own.
    """
    yield key
    if is_trace(key):
        head, session, stem = key.rsplit("/", 2)
        for attempt in range(2, MAX_NAMES):
            yield f"{head}/{retry_session(session, attempt)}/{stem}"


def is_run_record(key: str) -> bool:
    """Tell whether a key is the run.json of a run, which is merged with the one that is stored."""
    return key.rpartition("/")[2] == RUN_RECORD


def is_expired(changed: float, now: float) -> bool:
    """Tell whether what was last changed at `changed` (Unix seconds) is too old to be kept."""
    return now - changed > MAX_AGE_S


def _is_uploadable(key: str) -> bool:
    parts = key.split("/")
    return not any(not part or part.startswith(".") for part in parts) and not any(sign in key for sign in "\0\r\n")


def _weight(key: str) -> int:
    return 0 if is_run_record(key) else 2 if is_trace(key) else 1
