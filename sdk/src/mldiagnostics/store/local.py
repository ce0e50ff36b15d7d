"""The store in a local directory.

Files are written under a hidden name, then linked to their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from itertools import accumulate, islice
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
from mldiagnostics.store.file_at import FileAt, create_file
from mldiagnostics.store.model import PARTIAL, Stored, checked_key, checked_prefix, partial_name
from mldiagnostics.store.placing import put_in_place
from mldiagnostics.store.shared import split_shared
from mldiagnostics.store.source import UploadSource
from mldiagnostics.store.tree import ABSENT, files_below, folders_in, open_file, opened, remove_empty, remove_files
from mldiagnostics.text.file_errors import file_problem

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from mldiagnostics.store.model import Condition, Data, Entry

_KINDS: dict[type[StoreError], tuple[int, ...]] = {
    StoreNotFound: (errno.ENOENT, errno.EEXIST, errno.ENOTDIR),
    StoreForbidden: (errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS),
    StoreFull: (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    StoreUnreachable: (errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.ENOTCONN),
}


class LocalStore:
    """A store in the directory `root`, which the first put creates.

    Args:
        root: The directory.
        shown_as: Stands for the root in messages, for readers who must not see the path.
    """

    def __init__(self, root: Path, *, shown_as: str | None = None) -> None:
        self._root = root.absolute()
        self._trusted, self._inside = split_shared(self._root)
        self._shown_as = str(self._root) if shown_as is None else shown_as

    def put(self, key: str, data: Data, *, replace: bool | Condition = False) -> Stored:
        """See `Store.put`; as durable as a closed file on that file system."""
        path = self._path(key)
        shown = self._shown(path)
        source = UploadSource(data)
        self._require_no_links(path.parent)
        with _partial_beside(self._trusted, self._inner(key), shown) as (partial, final, file):
            _fill(file, source, shown)
            with _errors_of(shown):
                if replace is True:
                    partial.replace(final)
                elif not put_in_place(partial, final, replace or _never, source):
                    raise AlreadyStored(f"{shown}: already stored with other content, which was not changed")
        return Stored(key, source.bytes, str(path), source.sha256)

    def open(self, key: str) -> BinaryIO:
        """See `Store.open`."""
        path = self._path(key)
        with self._errors_at(path):
            self._require_directory()
            try:
                return open(path, "rb", opener=lambda _path, _flags: open_file(self._trusted, self._inner(key)))
            except ABSENT as error:
                self._require_no_links(path)
                raise NotStored(f"{self._shown(path)}: no such file") from error

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """See `Store.list`. Links are not listed and not followed."""
        start = checked_prefix(prefix)
        self._require_no_links(self._root / start)
        with self._errors_at(self._root / start):
            self._require_directory()
            with contextlib.suppress(*ABSENT), opened(self._trusted, self._inner(start)) as directory:
                yield from files_below(directory, start)

    def folders(self, prefix: str = "") -> Iterator[str]:
        """See `Store.folders`. Links are not listed."""
        start = self._root / checked_prefix(prefix)
        with self._errors_at(start):
            self._require_directory()
            try:
                with opened(self._trusted, self._inner(prefix)) as directory:
                    names = folders_in(directory)
            except ABSENT:
                self._require_no_links(start)
                return
        yield from names

    def delete(self, key: str, *, only_if: Condition | None = None) -> bool:
        """See `Store.delete`. Directories that are empty then are removed too."""
        path = self._path(key)
        self._require_no_links(path.parent)
        with self._errors_at(path):
            self._require_directory()
            folder, _, name = key.rpartition("/")
            try:
                with opened(self._trusted, self._inner(folder)) as directory:
                    file = FileAt(directory, name)
                    if only_if is None:
                        file.unlink()
                    elif not change_if(file, only_if, file.unlink):
                        return False
            except ABSENT:
                return False
        remove_empty(self._trusted, self._inner(folder), below=self._inside)
        return True

    def delete_all(self, prefix: str, *, keep: Container[str] = ()) -> int:
        """See `Store.delete_all`. Directories that are empty then are removed too."""
        directory = self._root / checked_key(prefix)
        with self._errors_at(directory):
            self._require_directory()
            try:
                with opened(self._trusted, self._inner(prefix)) as top:
                    removed = remove_files(top, prefix, keep)
            except FileNotFoundError:
                return 0
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise StoreForbidden(
                        f"{self._shown(directory)}: not a directory without links in its path; nothing was deleted"
                    ) from error
                raise
        remove_empty(self._trusted, self._inner(prefix), below=self._inside)
        return removed

    def url(self, key: str = "") -> str:
        """See `Store.url`."""
        return str(self._path(key) if key else self._root)

    def _path(self, key: str) -> Path:
        path = self._root / checked_key(key)
        if PARTIAL.fullmatch(path.name):
            raise ConfigurationError(f"{key!r}: not a valid key; this name is reserved for files being written")
        return path

    def _inner(self, key: str) -> str:
        """Return a key, or a prefix, below the directory that is trusted."""
        return "/".join(filter(None, (self._inside, key)))

    def _shown(self, path: Path) -> str:
        """Return the path as messages show it."""
        return "/".join((self._shown_as, *path.relative_to(self._root).parts))

    @contextlib.contextmanager
    def _errors_at(self, path: Path) -> Iterator[None]:
        """Turn errors of file operations into `StoreError`s that show this path."""
        try:
            yield
        except OSError as error:
            self._require_no_links(path)
            raise store_error(error, self._shown(path)) from error

    def _require_directory(self) -> None:
        """Raise `NotADirectoryError` if the root exists and is not a directory."""
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(self._root.stat().st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _require_no_links(self, path: Path) -> None:
        """Raise `StoreForbidden` if the path below the trusted directory has a link."""
        below = accumulate((str(self._trusted), *path.parts[len(self._trusted.parts) :]), os.path.join)
        if any(map(os.path.islink, islice(below, 1, None))):  # keys have no `..`
            raise StoreForbidden(
                f"{self._shown(path)}: a part of this path is a symbolic link, which may lead to files of others; use "
                "another path, or replace the link by a directory"
            )


@contextlib.contextmanager
def _partial_beside(root: Path, key: str, shown: str) -> Iterator[tuple[FileAt, FileAt, BinaryIO]]:
    """Yield a hidden file beside a key, the key's own name, and the hidden file open.

    The hidden name is removed at the end.
    """
    directory, _, name = key.rpartition("/")
    with _errors_of(shown):
        partial, descriptor = create_file(root, directory, partial_name(secrets.token_hex(8)))
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield partial, FileAt(partial.directory, name), file
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()
        os.close(partial.directory)


def _fill(file: BinaryIO, source: UploadSource, shown: str) -> None:
    """Write the whole source and close the file.

    Only errors of the file become `StoreError`s.
    """
    try:
        for piece in source:
            with _errors_of(shown):
                file.write(piece)
    finally:
        with _errors_of(shown):
            file.close()


def _never(_head: bytes) -> bool:
    return False


@contextlib.contextmanager
def _errors_of(shown: str) -> Iterator[None]:
    """Turn errors of file operations into `StoreError`s with this path."""
    try:
        yield
    except OSError as error:
        raise store_error(error, shown) from error


def store_error(error: OSError, shown: str) -> StoreError:
    """Return the error of a store for that of a file, whose path or name is `shown`."""
    kind = next((kind for kind, numbers in _KINDS.items() if error.errno in numbers), StoreError)
    return kind(f"{shown}: {file_problem(error)}")
