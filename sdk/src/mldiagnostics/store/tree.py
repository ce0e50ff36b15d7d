"""Files and directories below a root, reached without following a link.

Others may replace any directory below the root at any time. Each directory is therefore opened in the one above it, and
its files are used through it, although another directory may have its name meanwhile.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError
from mldiagnostics.store.model import PARTIAL, Entry
from mldiagnostics.text.timestamps import END_OF_TIME_S

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

ABSENT = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors that mean that a key holds nothing; a shorter or longer key may exist."""

MAX_DEPTH = 200
"""Nested directories that a list visits; each is open meanwhile."""

# Linux opens a directory without the right to list its files.
_REACH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextlib.contextmanager
def opened(root: Path, prefix: str) -> Iterator[int]:
    """Yield the descriptor of a directory.

    Args:
        root: Directory that is trusted: it may be a link.
        prefix: The directory below it. No part of it may be a link.

    Raises:
        FileNotFoundError: The directory does not exist.
        OSError: A part of the prefix is a link or a file.
    """
    descriptor = open_directory(root, prefix)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def open_directory(root: Path, prefix: str, *, create: bool = False) -> int:
    """Return the descriptor of a directory, see `opened`; the caller closes it.

    Args:
        root: Directory that is trusted: it may be a link.
        prefix: The directory below it. No part of it may be a link.
        create: Whether directories that do not exist are made.
    """
    if create:
        root.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(root, _REACH)
    for name in filter(None, prefix.split("/")):
        try:
            if create:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=descriptor)
            inner = os.open(name, _REACH | os.O_NOFOLLOW, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def open_file(root: Path, key: str) -> int:
    """Open a file to read it, and return its descriptor.

    A pipe that never has content is opened at once.

    Raises:
        OSError: The file does not exist, or a part of the key is a link.
    """
    directory, _, name = key.rpartition("/")
    with opened(root, directory) as folder:
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


@contextlib.contextmanager
def listed(directory: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    """Yield the entries of an open directory; they may be examined inside the block."""
    with _inner(directory, ".") as descriptor, os.scandir(descriptor) as entries:
        yield entries


def folders_in(directory: int) -> list[str]:
    """Return the names of the directories in an open directory. Links are left out."""
    return [name for name, is_directory in _names(directory) if is_directory]


def files_below(directory: int, prefix: str, depth: int = 0) -> Iterator[Entry]:
    """Yield files in the order of whole keys: a directory sorts as its name with `/`.

    Args:
        directory: Descriptor of an open directory.
        prefix: Its key with a trailing `/`, or "".
        depth: Number of open directories above it.

    Raises:
        StoreError: The directories are nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise StoreError(f"{prefix[:100]}: more than {MAX_DEPTH} directories inside each other; delete them by hand")
    names = [f"{name}/" if is_directory else name for name, is_directory in _names(directory)]
    for name in sorted(names, key=os.fsencode):
        if name.endswith("/"):
            with contextlib.suppress(*ABSENT), _inner(directory, name[:-1]) as inner:
                yield from files_below(inner, prefix + name, depth + 1)
        elif not PARTIAL.fullmatch(name) and (entry := _entry(directory, name, prefix + name)):
            yield entry


def remove_files(top: int, prefix: str, keep: Container[str]) -> int:
    """Empty an open directory; return the number of files and links.

    Args:
        top: Descriptor of the directory.
        prefix: Its key.
        keep: Keys of files to keep.

    Raises:
        OSError: A file cannot be removed.
        StoreError: The directories are nested too deeply.
    """
    removed = 0
    try:
        for directory, folders, files, descriptor in os.fwalk(".", topdown=False, dir_fd=top):
            start = "/".join((prefix, *directory.split("/")[1:]))
            for name in files:
                if f"{start}/{name}" not in keep:
                    os.unlink(name, dir_fd=descriptor)
                    removed += 1
            for name in folders:
                _remove_folder(name, descriptor)
    except RecursionError as error:
        raise StoreError(f"{prefix}: directories are nested too deeply; delete them by hand") from error
    return removed


def remove_empty(root: Path, prefix: str, *, below: str = "") -> None:
    """Remove a directory and those above it up to `below`, as far as they are empty."""
    with contextlib.suppress(OSError):
        while prefix != below:
            prefix, _, name = prefix.rpartition("/")
            with opened(root, prefix) as directory:
                os.rmdir(name, dir_fd=directory)


def _names(directory: int) -> list[tuple[str, bool]]:
    """Return the names in an open directory, and whether they are directories."""
    with listed(directory) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


@contextlib.contextmanager
def _inner(directory: int, name: str) -> Iterator[int]:
    descriptor = os.open(name, _LIST, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _entry(directory: int, name: str, key: str) -> Entry | None:
    """Return a regular file; None for anything else, and for a deleted file."""
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    modified = max(-END_OF_TIME_S, min(status.st_mtime, END_OF_TIME_S))  # others may set times that no calendar has
    return Entry(key, status.st_size, datetime.fromtimestamp(modified, tz=timezone.utc))


def _remove_folder(name: str, parent: int) -> None:
    """Remove an empty directory, or a link to a directory."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            os.unlink(name, dir_fd=parent)
        elif error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
