"""The store that a spool belongs to: use it, or say that files wait for it."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeVar

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import NoCredentials
from mldiagnostics.spool.decisions import RETRY_CREDENTIALS_S, normalized
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.store import Store

_Result = TypeVar("_Result")


def use_store(url: str, action: Callable[[Store], _Result]) -> _Result:
    """Call `action` with the store at a path or URL and return its result.

    Raises as `action` and `open_store` do. While credentials are known to be missing it raises `NoCredentials` at once:
    a new search for them can take longer than the exit of a process may.
    """
    missing = _missing_credentials.get(url)
    if missing is not None and time.monotonic() < missing[1]:
        raise NoCredentials(missing[0])
    try:
        return action(open_store(url))
    except NoCredentials as error:
        _missing_credentials[url] = str(error), time.monotonic() + RETRY_CREDENTIALS_S
        raise


def report_spooling(destination: str, directory: Path, problem: str) -> None:
    """Warn once per destination that files wait, and how they are uploaded."""
    storage, folder = normalized(destination), directory.parent
    warn_once(
        f"spool {storage}",
        f"storage {storage!r}: cannot store files now: {problem}; records, profiles and run.json are kept in {folder}; "
        "the next process on this machine that uses this storage uploads them, or run: "
        f"python -m mldiagnostics.upload {folder}",
    )


_missing_credentials: dict[str, tuple[str, float]] = {}
"""URL -> why its credentials are missing, and until when that counts (`time.monotonic`)."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_missing_credentials.clear)
