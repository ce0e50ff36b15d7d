"""Copies of snapshots in a store, for other machines; failures only warn."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


FOLDER = "goodput_cache"
"""The folder of the copies below the URL that the user gives."""


def keep(files: Iterable[Path], url: str) -> None:
    """Copy files to `<url>/goodput_cache/`, replacing those of the same names."""
    from mldiagnostics.store import open_store  # noqa: PLC0415 - only copies need it

    try:
        store = open_store(url)
        for file in files:
            with file.open("rb") as data:
                store.put(f"{FOLDER}/{file.name}", data, replace=True)
    except Exception as error:  # noqa: BLE001 - copies only save time
        warn_once("goodput-copy", f"{url}: cannot store copies of the history: {error}")


def fetch(files: Iterable[Path], url: str) -> None:
    """Replace files that are missing or older than their copies."""
    from mldiagnostics.store import open_store  # noqa: PLC0415 - only copies need it

    try:
        store = open_store(url)
        copies = {entry.key: entry.modified.timestamp() for entry in store.list(FOLDER)}
        for file in files:
            key = f"{FOLDER}/{file.name}"
            if key in copies and (not file.exists() or file.stat().st_mtime < copies[key]):
                with store.open(key) as data:
                    _replace(file, data.read())
    except Exception as error:  # noqa: BLE001 - copies only save time
        warn_once(
            "goodput-copy", f"{url}: cannot read copies of the history, the log is read from its beginning: {error}"
        )


def _replace(file: Path, content: bytes) -> None:
    """Write a file atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(content)
        os.replace(partial, file)  # noqa: PTH105 - a string comes from mkstemp
    except BaseException:
        os.unlink(partial)  # noqa: PTH108
        raise
