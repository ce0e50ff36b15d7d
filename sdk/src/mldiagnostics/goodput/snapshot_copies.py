"""Copies of local files in a store, so that another machine need not begin from nothing; failures are only told."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

__all__ = ["FOLDER", "fetch", "keep"]

FOLDER = "goodput_cache"
"""Where the copies are below the path that people give."""


def keep(files: Iterable[Path], url: str) -> None:
    """Put files into `<url>/goodput_cache/`, over those of the same names."""
    from mldiagnostics.store import open_store  # noqa: PLC0415 - only who keeps copies needs it

    try:
        store = open_store(url)
        for file in files:
            with file.open("rb") as data:
                store.put(f"{FOLDER}/{file.name}", data, replace=True)
    except Exception as error:  # noqa: BLE001 - without copies it takes longer elsewhere, that is all
        warn_once("goodput-copy", f"no copies could be put into {url}: {error}")


def fetch(files: Iterable[Path], url: str) -> None:
    """Replace those files that are missing or older than their copies."""
    from mldiagnostics.store import open_store  # noqa: PLC0415 - only who keeps copies needs it

    try:
        store = open_store(url)
        kept = {entry.key: entry.modified.timestamp() for entry in store.list(FOLDER)}
        for file in files:
            key = f"{FOLDER}/{file.name}"
            if key in kept and (not file.exists() or file.stat().st_mtime < kept[key]):
                with store.open(key) as data:
                    _replace(file, data.read())
    except Exception as error:  # noqa: BLE001 - without copies it takes longer, that is all
        warn_once("goodput-copy", f"the copies in {url} could not be read, begin without them: {error}")


def _replace(file: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}-")
    try:
        with os.fdopen(handle, "wb") as written:
            written.write(content)
        os.replace(partial, file)  # noqa: PTH105 - a string comes from mkstemp
    except BaseException:
        os.unlink(partial)  # noqa: PTH108
        raise
