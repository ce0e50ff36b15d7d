"""Files below a directory that tenants may write to; no link is followed."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

ENTRIES_PER_FILE: Final = 4
"""Unwanted entries cost time as well, and a thread that reads cannot be stopped."""


class TooManyFiles(Exception):
    """A directory has more files than one list may have."""


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file as it was when it was read."""

    content: bytes
    size: int
    """Size of the whole file in bytes."""
    version: str
    """Differs if another file has taken the place."""


def list_files(
    root: Path, directory: Sequence[str], is_wanted: Callable[[str], bool], *, most: int
) -> list[tuple[str, int]]:
    """Return path and size in bytes of the plain files below a directory.

    Args:
        root: The volume, which is trusted.
        directory: Segments of the directory below it.
        is_wanted: Chooses files by their names.
        most: Most files. At most four times as many entries of all kinds are visited.

    Raises:
        OSError: The directory does not exist, or is a link.
        TooManyFiles: It has more files or entries.
    """
    files: list[tuple[str, int]] = []
    entries = 0
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        inner = waiting.pop()
        for entry in _entries(root, directory, inner):
            entries += 1
            if len(files) > most or entries > ENTRIES_PER_FILE * most:
                raise TooManyFiles
            path = (*inner, entry.name)
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            elif is_wanted(entry.name) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # deleted meanwhile
                    files.append(("/".join(path), entry.stat(follow_symlinks=False).st_size))
    if len(files) > most:
        raise TooManyFiles
    return sorted(files)


def _entries(root: Path, directory: Sequence[str], inner: Sequence[str]) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of a directory, none of a deleted inner one."""
    try:
        with _opened(root, (*directory, *inner)) as folder, os.scandir(folder) as entries:
            yield from entries
    except OSError:
        if not inner:
            raise


def read_part(root: Path, path: Sequence[str], offset: int, most: int) -> FilePart:
    """Return at most `most` bytes of a file from an offset.

    Raises:
        OSError: The file does not exist, is not a plain one, or a part of its path is a link.
    """
    with _opened(root, path[:-1]) as folder:
        file = os.open(path[-1], _READ, dir_fd=folder)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        content = b""
        while len(content) < most and (more := os.pread(file, most - len(content), offset + len(content))):
            content += more
        return FilePart(content, status.st_size, f"{status.st_dev:x}-{status.st_ino:x}")
    finally:
        os.close(file)


@contextmanager
def _opened(root: Path, directory: Sequence[str]) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in directory:
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)
