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
from mldiagnostics.store.model import Entry, Stored, checked_key, checked_prefix
from mldiagnostics.store.source import PIECE_BYTES, UploadSource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from mldiagnostics.store.model import Data

_PARTIAL = re.compile(r"\.mldiag-[0-9a-f]{16}\.partial")
"""Names of files that are being written, or were when their process was killed."""

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
    """A store in the directory `root`, which the first put creates."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def put(self, key: str, data: Data, *, replace: bool = False) -> Stored:
        """See `Store.put`; as durable as a closed file on that file system."""
        path = self._path(key)
        source = UploadSource(data)
        self._require_inside(path.parent)
        with _partial_beside(path) as partial:
            _write(partial, source, path)
            with _errors_of(path):
                if replace:
                    partial.replace(path)
                elif not _link_into_place(partial, path) and not _holds(path, source):
                    raise AlreadyStored(f"{path}: already stored with other content, which was not changed")
        return Stored(key, source.bytes, source.sha256, str(path))

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`."""
        path = self._path(key)
        self._require_inside(path)
        with _errors_of(path):
            self._require_directory()
            try:
                return path.open("rb")
            except _ABSENT as error:
                raise NotStored(f"{path}: no such file") from error

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See `Store.list`. Links are not listed and not followed."""
        start = checked_prefix(prefix)
        self._require_inside(self._root / start)
        with _errors_of(self._root / start):
            self._require_directory()
            yield from _files_below(self._root / start, start)

    def folders(self, prefix: str = "") -> Iterator[str]:
        """See `Store.folders`. Links are not listed."""
        start = self._root / checked_prefix(prefix)
        self._require_inside(start)
        with _errors_of(start):
            self._require_directory()
            try:
                with os.scandir(start) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except _ABSENT:
                return
        yield from names

    def delete(self, key: str) -> bool:
        """See `Store.delete`. Directories stay."""
        path = self._path(key)
        self._require_inside(path.parent)
        with _errors_of(path):
            self._require_directory()
            try:
                path.unlink()
            except _ABSENT:
                return False
        return True

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return str(self._path(key) if key else self._root)

    def _path(self, key: str) -> Path:
        path = self._root / checked_key(key)
        if _PARTIAL.fullmatch(path.name):
            raise ConfigurationError(f"{key!r}: not a valid key; this name is reserved for files being written")
        return path

    def _require_directory(self) -> None:
        """Raise `NotADirectoryError` if the root exists and is not a directory."""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(self._root.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _require_inside(self, path: Path) -> None:
        """Raise `StoreForbidden` if links, perhaps of other users, lead out of the root."""
        real, root = os.path.realpath(path), os.path.realpath(self._root)
        if not Path(real).is_relative_to(root):
            raise StoreForbidden(f"{path}: a link leads out of {self._root} to {real}; remove the link")


@contextlib.contextmanager
def _partial_beside(path: Path) -> Iterator[Path]:
    """Yield a hidden name in the same directory, and delete its file at the end."""
    partial = path.with_name(f".mldiag-{secrets.token_hex(8)}.partial")
    try:
        yield partial
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def _write(partial: Path, source: UploadSource, path: Path) -> None:
    """Write the whole source; only errors of the file become `StoreError`s."""
    with _errors_of(path):
        partial.parent.mkdir(parents=True, exist_ok=True)
        file = partial.open("xb")
    try:
        for piece in source:
            with _errors_of(path):
                file.write(piece)
    finally:
        with _errors_of(path):
            file.close()


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
def _errors_of(path: Path) -> Iterator[None]:
    """Turn errors of file operations on `path` into `StoreError`s."""
    try:
        yield
    except OSError as error:
        kind, cure = _ERRORS.get(error.errno, (StoreError, "check the file system"))
        raise kind(f"{path}: {error.strerror or error}; {cure}") from error
