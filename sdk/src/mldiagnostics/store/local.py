"""The store in a local directory.

Files are written under a hidden name, then linked to their own.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from datetime import datetime, timezone
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    NotStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)
from mldiagnostics.store.conditional import change_if
from mldiagnostics.store.model import Entry, Stored, checked_key, checked_prefix
from mldiagnostics.store.source import PIECE_BYTES, UploadSource
from mldiagnostics.store.tree import remove_files

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from typing import BinaryIO

    from mldiagnostics.store.model import Condition, Data

_PARTIAL = re.compile(r"\.mldiag-[0-9a-f]{16}\.partial")
"""Names of files that are being written, or were when their process was killed."""

_CREATE_TRIES = 100

_ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors that mean that a key holds nothing; a shorter or longer key may exist."""

_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.ENOSYS}

_ERRORS: dict[int | None, tuple[type[StoreError], str]] = {
    errno.ENOENT: (StoreNotFound, "create the directory or mount its volume"),
    errno.EEXIST: (StoreNotFound, "a file has the directory's name; remove it or mount the volume"),
    errno.ENOTDIR: (StoreNotFound, "a part of the path is a file; choose another path"),
    errno.EACCES: (StoreForbidden, "grant this user access"),
    errno.EPERM: (StoreForbidden, "grant this user access"),
    errno.EROFS: (StoreForbidden, "mount the volume writable or choose another path"),
    errno.ENOSPC: (StoreFull, "free some space or choose another path"),
    errno.EDQUOT: (StoreFull, "raise the quota or choose another path"),
    errno.EFBIG: (StoreFull, "raise the limit on file sizes or choose another path"),
    errno.EIO: (StoreUnreachable, "check the disk or the network file system"),
    errno.ESTALE: (StoreUnreachable, "check the network file system"),
    errno.ETIMEDOUT: (StoreUnreachable, "check the network file system"),
    errno.ENOTCONN: (StoreUnreachable, "check the mount of the file system"),
}


class LocalStore:
    """A store in the directory `root`, which the first put creates.

    Args:
        root: The directory.
        shown_as: Stands for the root in messages, for readers who must not see the path.
    """

    def __init__(self, root: Path, *, shown_as: str | None = None) -> None:
        self._root = root.absolute()
        self._shown_as = str(self._root) if shown_as is None else shown_as

    def put(self, key: str, data: Data, *, replace: bool | Condition = False) -> Stored:
        """See `Store.put`; as durable as a closed file on that file system."""
        path = self._path(key)
        shown = self._shown(path)
        source = UploadSource(data)
        self._require_inside(path.parent)
        with _partial_beside(path) as partial:
            _write(partial, source, shown)
            with _errors_of(shown):
                if replace is True:
                    partial.replace(path)
                elif not _put_in_place(partial, path, replace or _never, source):
                    raise AlreadyStored(f"{shown}: already stored with other content, which was not changed")
        return Stored(key, source.bytes, source.sha256, str(path))

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`."""
        path = self._path(key)
        self._require_inside(path)
        with self._errors_at(path):
            self._require_directory()
            try:
                return open(path, "rb", opener=_open_at_once)
            except _ABSENT as error:
                raise NotStored(f"{self._shown(path)}: no such file") from error

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See `Store.list`. Links are not listed and not followed."""
        start = checked_prefix(prefix)
        self._require_inside(self._root / start)
        with self._errors_at(self._root / start):
            self._require_directory()
            yield from _files_below(self._root / start, start)

    def folders(self, prefix: str = "") -> Iterator[str]:
        """See `Store.folders`. Links are not listed."""
        start = self._root / checked_prefix(prefix)
        self._require_inside(start)
        with self._errors_at(start):
            self._require_directory()
            try:
                with os.scandir(start) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except _ABSENT:
                return
        yield from names

    def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """See `Store.delete`. Directories that are empty then are removed too."""
        path = self._path(key)
        self._require_inside(path.parent)
        with self._errors_at(path):
            self._require_directory()
            try:
                if only_if is None:
                    path.unlink()
                elif not change_if(path, only_if, path.unlink):
                    return False
            except _ABSENT:
                return False
        self._remove_empty(path.parent)
        return True

    def delete_all(self, prefix: str, *, keep: Container[str] = ()) -> int:
        """See `Store.delete_all`. Directories that are empty then are removed too."""
        directory = self._root / checked_key(prefix)
        with self._errors_at(directory):
            self._require_directory()
            try:
                removed = remove_files(self._root, prefix, keep)
            except FileNotFoundError:
                return 0
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise StoreForbidden(
                        f"{self._shown(directory)}: not a directory without links in its path; nothing was deleted"
                    ) from error
                raise
        self._remove_empty(directory)
        return removed

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return str(self._path(key) if key else self._root)

    def _path(self, key: str) -> Path:
        path = self._root / checked_key(key)
        if _PARTIAL.fullmatch(path.name):
            raise ConfigurationError(f"{key!r}: not a valid key; this name is reserved for files being written")
        return path

    def _shown(self, path: Path) -> str:
        """Return the path as messages show it."""
        return "/".join((self._shown_as, *path.relative_to(self._root).parts))

    @contextlib.contextmanager
    def _errors_at(self, path: Path) -> Iterator[None]:
        """Turn errors of file operations into `StoreError`s that show this path."""
        try:
            yield
        except OSError as error:
            raise _store_error(error, self._shown(path)) from error

    def _require_directory(self) -> None:
        """Raise `NotADirectoryError` if the root exists and is not a directory."""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(self._root.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _require_inside(self, path: Path) -> None:
        """Raise `StoreForbidden` if links, perhaps of other users, lead out of the root."""
        below = accumulate((str(self._root), *path.parts[len(self._root.parts) :]), os.path.join)
        if not any(map(os.path.islink, islice(below, 1, None))):
            return  # keys have no `..`
        real, root = os.path.realpath(path), os.path.realpath(self._root)
        if not Path(real).is_relative_to(root):
            raise StoreForbidden(
                f"{self._shown(path)}: a symbolic link in this path leads out of the store; use another path, or "
                "replace the link by a directory"
            )

    def _remove_empty(self, directory: Path) -> None:
        """Remove the directory and its parents below the root, as far as they are empty."""
        with contextlib.suppress(OSError):
            while directory != self._root:
                directory.rmdir()
                directory = directory.parent


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without blocking: another user may put a pipe in its place."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextlib.contextmanager
def _partial_beside(path: Path) -> Iterator[Path]:
    """Yield a hidden name in the same directory, and delete its file at the end."""
    partial = path.with_name(f".mldiag-{secrets.token_hex(8)}.partial")
    try:
        yield partial
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _write(partial: Path, source: UploadSource, shown: str) -> None:
    """Write the whole source; only errors of the file become `StoreError`s."""
    with _errors_of(shown):
        file = _create(partial)
    try:
        for piece in source:
            with _errors_of(shown):
                file.write(piece)
    finally:
        with _errors_of(shown):
            file.close()


def _create(partial: Path) -> BinaryIO:
    """Create a file and its directory, which a delete may remove while it is empty."""
    for _ in range(_CREATE_TRIES):
        # `mkdir` raises both if the directory goes away meanwhile.
        with contextlib.suppress(FileNotFoundError, FileExistsError):
            partial.parent.mkdir(parents=True, exist_ok=True)
            return partial.open("xb")
    partial.parent.mkdir(parents=True, exist_ok=True)
    return partial.open("xb")


def _never(_head: bytes) -> bool:
    return False


def _put_in_place(partial: Path, path: Path, accept: Condition, source: UploadSource) -> bool:
    """Give the finished file its name, or the place of a file that is accepted.

    Return false if a file with other content has the name.
    """
    while not _link_into_place(partial, path):
        with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
            return change_if(path, accept, lambda: partial.replace(path)) or _holds(path, source)
    return True


def _link_into_place(partial: Path, path: Path) -> bool:
    """Give the finished file its name; false if that is taken. Atomic with hard links."""
    try:
        path.hardlink_to(partial)
    except FileExistsError:
        return False
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        return _reserve_and_rename(partial, path)
    return True


def _reserve_and_rename(partial: Path, path: Path) -> bool:
    """Replace hard links (FAT, many FUSE file systems): reserve the name, then rename."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    try:
        partial.replace(path)
    except OSError:
        path.unlink()
        raise
    return True


def _holds(path: Path, source: UploadSource) -> bool:
    """Return whether the file has the same content as the source."""
    if path.stat().st_size != source.bytes:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest() == source.sha256


def _files_below(directory: Path, prefix: str) -> Iterator[Entry]:
    """Yield files in the order of whole keys: a directory sorts as its name with `/`."""
    try:
        with os.scandir(directory) as listing:
            entries = [(f"{e.name}/" if e.is_dir(follow_symlinks=False) else e.name, e) for e in listing]
    except _ABSENT:
        return
    for name, entry in sorted(entries, key=lambda pair: os.fsencode(pair[0])):
        if name.endswith("/"):
            yield from _files_below(directory / entry.name, prefix + name)
        elif entry.is_file(follow_symlinks=False) and not _PARTIAL.fullmatch(name):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                status = entry.stat(follow_symlinks=False)
                modified = datetime.fromtimestamp(status.st_mtime, tz=timezone.utc)
                yield Entry(prefix + name, status.st_size, modified)


@contextlib.contextmanager
def _errors_of(shown: str) -> Iterator[None]:
    """Turn errors of file operations into `StoreError`s with this path."""
    try:
        yield
    except OSError as error:
        raise _store_error(error, shown) from error


def _store_error(error: OSError, shown: str) -> StoreError:
    kind, cure = _ERRORS.get(error.errno, (StoreError, "check the file system"))
    return kind(f"{shown}: {error.strerror or error}; {cure}")
