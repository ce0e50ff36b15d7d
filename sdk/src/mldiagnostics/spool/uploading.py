"""Upload of spooled files into their store; each is deleted once it is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError
from mldiagnostics.lifecycle.history import merged
from mldiagnostics.spool.decisions import is_run_record, names_for, upload_order
from mldiagnostics.text.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from mldiagnostics.spool.directory import SpoolDirectory
    from mldiagnostics.store import Store

_PIECE_BYTES = 1024 * 1024


class UploadStopped(Exception):
    """The process exits: the current file is left to the next one."""


@dataclass(frozen=True, slots=True)
class UploadResult:
    """Number and size of uploaded files, and keys whose stored content differs."""

    files: int = 0
    bytes: int = 0
    conflicts: tuple[str, ...] = ()


def upload_all(
    directory: SpoolDirectory,
    store: Store,
    *,
    only: Callable[[str], bool] = lambda _: True,
    stopped: Callable[[], bool] = lambda: False,
) -> UploadResult:
    """Upload the closed files of a directory and delete each that is stored.

    A file that is stored already with the same content counts as uploaded, so an upload can be repeated.

    Args:
        directory: The directory, locked by the caller.
        store: The destination; each file goes to its key.
        only: Selects the keys to upload.
        stopped: Called between pieces; true stops the upload.

    Raises:
        StoreError: A file could not be stored. Files uploaded before stay in the store.
        UploadStopped: `stopped` returned true.
    """
    uploaded, size, conflicts = 0, 0, []
    for key in upload_order(directory.keys()):
        if not only(key):
            continue
        path = directory.files / key
        try:
            if is_run_record(key):
                _put_run_record(store, key, path.read_bytes())
            else:
                with path.open("rb") as file:
                    _put(store, key, file, stopped)
            size += path.stat().st_size
            path.unlink()
        except FileNotFoundError:  # uploaded by another part of this process
            continue
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from error
        except AlreadyStored as error:
            warn_once("spool-conflict", f"{path}: not uploaded: {error}; compare both files and delete one")
            conflicts.append(key)
        else:
            uploaded += 1
    return UploadResult(uploaded, size, tuple(conflicts))


def _put(store: Store, key: str, file: BinaryIO, stopped: Callable[[], bool]) -> None:
    """Store a file under the first of its names that is free or has the same content."""
    taken: AlreadyStored | None = None
    for name in names_for(key):
        file.seek(0)
        try:
            store.put(name, _pieces(file, stopped))
        except AlreadyStored as error:
            taken = taken or error
        else:
            return
    assert taken is not None  # noqa: S101 - for mypy: `names_for` yields at least one name
    raise taken


def _put_run_record(store: Store, key: str, content: bytes) -> None:
    """Merge a run.json into the one that is stored, if there is one."""
    try:
        with store.open(key) as file:
            stored = _parsed(file.read())
    except NotStored:
        stored = None
    spooled = _parsed(content)
    document = merged(stored, spooled) if spooled else stored
    if document and document != stored:
        store.put(key, f"{dumps(document, indent=1)}\n".encode(), replace=True)


def _parsed(content: bytes) -> Mapping[str, Any] | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, Mapping) else None


def _pieces(file: BinaryIO, stopped: Callable[[], bool]) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        if stopped():
            raise UploadStopped
        yield piece
