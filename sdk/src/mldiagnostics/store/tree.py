"""Removal of directories that never follows a link."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TYPE_CHECKING

from mldiagnostics.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator
    from pathlib import Path

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_files(root: Path, prefix: str, keep: Container[str]) -> int:
    """Remove files, links and empty directories below a directory.

    Others may change the directories meanwhile. Return the number of files.

    Args:
        root: Directory that is trusted: it may be a link.
        prefix: The directory below it. No part of it may be a link.
        keep: Files to keep, as keys below the root.

    Raises:
        FileNotFoundError: The directory does not exist.
        OSError: A part of the prefix is a link, or a file cannot be removed.
        StoreError: The directories are nested too deeply.
    """
    removed = 0
    with _opened(root, prefix) as top:
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


@contextlib.contextmanager
def _opened(root: Path, prefix: str) -> Iterator[int]:
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for name in prefix.split("/"):
            inner = os.open(name, _DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _remove_folder(name: str, parent: int) -> None:
    """Remove an empty directory, or a link to a directory."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno == errno.ENOTDIR:
            os.unlink(name, dir_fd=parent)
        elif error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
