"""Files from the spool into their store: what one process left, whole file by whole file, deleted once it is there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import AlreadyStored, NotStored, StoreError
from mldiagnostics.run.history import merged
from mldiagnostics.spool.decisions import is_run_record, names_for, upload_order
from mldiagnostics.strict_json import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from mldiagnostics.spool.directory import SpoolDirectory
    from mldiagnostics.store import Store

_PIECE_BYTES = 1024 * 1024


class Stopped(Exception):
    """The process ends: the file under way is left for the next one."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of the files of a directory: brought into the store, or left since their name has other content."""

    files: int = 0
    bytes: int = 0
    conflicts: tuple[str, ...] = ()


def upload_all(
    directory: SpoolDirectory,
    store: Store,
    *,
    only: Callable[[str], bool] = lambda _: True,
    stopped: Callable[[], bool] = lambda: False,
) -> Uploaded:
    """Bring the closed files of a directory into a store and delete each that is there.

    A file that is in the store already, with the same content, counts as brought: to repeat an upload does no harm.

    Args:
        directory: The directory, which the caller holds.
        store: Where the files go, each to its key.
        only: Which keys to bring.
        stopped: Asked between pieces; once it is true, nothing more is brought.

    Raises:
        StoreError: The store does not take a file. What was brought before is there.
        Stopped: The process ends.
    """
    brought, size, conflicts = 0, 0, []
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
        except FileNotFoundError:  # brought by another part of this process
            continue
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror or error}") from error
        except AlreadyStored as error:
            warn_once("spool-conflict", f"{path} is not uploaded: {error}; compare both and delete one")
            conflicts.append(key)
        else:
            brought += 1
    return Uploaded(brought, size, tuple(conflicts))


def _put(store: Store, key: str, file: BinaryIO, stopped: Callable[[], bool]) -> None:
    """Store a file under the first of its names that is free, or holds the same already."""
    taken: AlreadyStored | None = None
    for name in names_for(key):
        file.seek(0)
        try:
            store.put(name, _pieces(file, stopped))
        except AlreadyStored as error:
            taken = taken or error
        else:
            return
    assert taken is not None  # noqa: S101 - for mypy: there is one name at least
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
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _pieces(file: BinaryIO, stopped: Callable[[], bool]) -> Iterator[bytes]:
    while piece := file.read(_PIECE_BYTES):
        if stopped():
            raise Stopped
        yield piece
