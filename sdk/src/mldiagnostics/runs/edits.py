"""Name, tags and notes that people gave runs after their start.

Each run has a file of its own, beside the directories of the runs: a running program writes its run.json anew.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import AlreadyStored, MLDiagnosticsError, NotStored, StoreError
from mldiagnostics.layout import EDITS_DIR, edits_key
from mldiagnostics.lifecycle.description import RunDescription
from mldiagnostics.store.model import HEAD_BYTES
from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics.store import Store


_MAX_BYTES = 64 * 2**10
_TRIES = 5
"""Of two people who edit one run at the same time, the second one reads again."""


def run_folders(store: Store) -> list[str]:
    """Return the directories below a root that may be runs."""
    return [folder for folder in store.folders() if folder != EDITS_DIR]


def edits_keys(store: Store) -> frozenset[str]:
    """Return the keys of the files with edits below a root, see `layout.edits_key`.

    A directory of edits that cannot be read has none, with a warning.
    """
    try:
        return frozenset(entry.key for entry in store.list(EDITS_DIR))
    except StoreError as error:
        warn_once("unreadable-edits", f"{store.url(EDITS_DIR)}: cannot be read, all edits are left out: {error}")
        return frozenset()


def read_edits(store: Store, folder: str) -> RunDescription:
    """Return the words that people gave a run.

    Those of a file that cannot be read are left out with a warning.
    """
    try:
        return RunDescription.of(_parsed(_content(store, folder)))
    except MLDiagnosticsError as error:
        warn_once("unreadable-edits", f"{store.url(edits_key(folder))}: cannot be read and is left out: {error}")
        return RunDescription()


def edit_run(store: Store, folder: str, change: Callable[[RunDescription], RunDescription]) -> None:
    """Change the words that people gave a run.

    Args:
        store: Store of the root.
        folder: Directory of the run below it.
        change: Returns the new words for those before; called again if somebody else changes them meanwhile.

    Raises:
        StoreError: The file cannot be read or written.
    """
    key = edits_key(folder)
    for _ in range(_TRIES):
        content = _content(store, folder)
        edits = change(RunDescription.of(_parsed(content))).to_json()
        try:
            if edits:
                # The time comes first: two versions of the file differ at their beginning, which a store compares.
                text = dumps({"edited": time.time(), **edits}, indent=1)
                store.put(key, f"{text}\n".encode(), replace=False if content is None else _is(content))
                return
            if content is None or store.delete(key, only_if=_is(content)):
                return
        except AlreadyStored:
            continue
    raise StoreError(f"{store.url(key)}: others change it all the time; try again")


def _content(store: Store, folder: str) -> bytes | None:
    """Return the file of a run; None without one."""
    try:
        with store.open(edits_key(folder)) as file:
            return file.read(_MAX_BYTES)
    except NotStored:
        return None


def _parsed(content: bytes | None) -> Mapping[str, Any]:
    try:
        document = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, Mapping) else {}


def _is(content: bytes) -> Callable[[bytes], bool]:
    return lambda head: head == content[:HEAD_BYTES]
