"""Spool directories: locked by one process, acquired by the next one.

A process holds the locks of its directories until it ends. `creation` creates them.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakSet

from mldiagnostics.identity.origin import Origin
from mldiagnostics.spool.decisions import MAX_SPOOL_BYTES, folder_of, normalized
from mldiagnostics.spool.places import directories, roots

if TYPE_CHECKING:
    from collections.abc import Iterator

Form: TypeAlias = Literal["files", "records"]
"""The content: files that a store accepts as they are, or records that a sink has to write."""

VERSION = 1
"""Of `spool.json`; directories with another version are left alone."""

DESCRIPTION = "spool.json"
FILES = "files"
_LOCK = ".lock"


@dataclass(frozen=True, slots=True)
class Description:
    """A directory's destination and form, and the process that wrote its files."""

    destination: str
    form: Form
    origin: Origin


class SpoolDirectory:
    """A spool directory that this process has locked; its content is in `files`."""

    def __init__(
        self, path: Path, description: Description, lock: int, *, capacity_bytes: int = MAX_SPOOL_BYTES
    ) -> None:
        self.path = path
        self.files = path / FILES
        self.description = description
        self.capacity_bytes = capacity_bytes
        """Limit of its size in bytes."""
        self._lock = lock
        _held.add(self)

    @property
    def origin(self) -> Origin:
        """The process that wrote the files."""
        return self.description.origin

    def keys(self) -> list[str]:
        """Return the keys of the waiting files; links are neither followed nor listed."""
        return [path.relative_to(self.files).as_posix() for path in files_below(self.files)]

    def bytes(self) -> int:
        """Return the total size of the files."""
        return bytes_below(self.files)

    def remove(self) -> None:
        """Delete the directory and its content, after everything was delivered."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Unlock the directory for the next process, or for another part of this one."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove_or_release(self) -> None:
        """Delete the directory if it is empty; otherwise release it."""
        if self.bytes():
            self.release()
        else:
            self.remove()


_held: WeakSet[SpoolDirectory] = WeakSet()


def abandoned_directories(destination: str, *, form: Form = "files", key: str = "") -> Iterator[SpoolDirectory]:
    """Yield the locked directories that ended processes left for a destination.

    The caller releases or removes each. With `key`, only directories that hold this file are yielded.
    """
    wanted = normalized(destination)
    for root in roots():
        for path in directories(root / folder_of(wanted, user=os.getuid())):
            if (key and not (path / FILES / key).is_file()) or (directory := acquire_directory(path)) is None:
                continue
            if (directory.description.destination, directory.description.form) == (wanted, form):
                yield directory
            else:
                directory.release()


def acquire_directory(path: Path, *, of_others: bool = False) -> SpoolDirectory | None:
    """Lock and return a directory whose process has ended, else return None.

    None also means that `path` is not a spool directory. Directories of other users, who could make this process
    upload anything, are acquired only with `of_others`.
    """
    with contextlib.suppress(OSError):  # removed by another process
        if not of_others and path.lstat().st_uid != os.getuid():
            return None
        if (path / _LOCK).exists() and (lock := try_lock(path)) is not None:
            description = read_description(path)
            if description is not None:
                return SpoolDirectory(path, description, lock)
            os.close(lock)
    return None


def read_description(path: Path) -> Description | None:
    """Return a directory's `spool.json`, None if it is not a spool directory."""
    try:
        document = json.loads((path / DESCRIPTION).read_text())
        if document["v"] != VERSION or document["form"] not in {"files", "records"}:
            return None
        return Description(str(document["destination"]), document["form"], Origin(**document["origin"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def try_lock(directory: Path) -> int | None:
    """Lock the directory until the returned descriptor is closed; None if locked."""
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def files_below(directory: Path) -> Iterator[Path]:
    """Yield all files below a directory, without links."""
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                yield path


def bytes_below(directory: Path) -> int:
    """Return the total size of all files below a directory."""
    total = 0
    for path in files_below(directory):
        with contextlib.suppress(OSError):  # uploaded meanwhile
            total += path.stat().st_size
    return total


def _after_fork() -> None:
    """Close a forked child's copies of the locks, which belong to the parent alone."""
    for directory in tuple(_held):
        directory.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
