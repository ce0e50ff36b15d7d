"""Directories of the spool on the local disk: made and locked by one process, found by the next one when that is gone.

The spool is in the first of its places that this user can write (see `decisions.candidates`) and that shows it to
nobody else. A process locks its directories for as long as it lives.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias
from weakref import WeakSet

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.identity.origin import Origin
from mldiagnostics.sinks.model import SinkUnavailable
from mldiagnostics.spool.decisions import (
    MAX_SPOOL_BYTES,
    folder_of,
    is_expired,
    normalized,
    temporary_folder,
)
from mldiagnostics.spool.places import directories, roots

if TYPE_CHECKING:
    from collections.abc import Iterator

Form: TypeAlias = Literal["files", "records"]
"""What waits: files that a store takes as they are, or records that a sink has to write."""

_DESCRIPTION = "spool.json"
_FILES = "files"
_LOCK = ".lock"
_VERSION = 1


class SpoolUnavailable(SinkUnavailable):
    """No local directory can hold what waits."""


@dataclass(frozen=True, slots=True)
class Description:
    """For which destination a directory waits, in which form, and which process filled it."""

    destination: str
    form: Form
    origin: Origin


class SpoolDirectory:
    """A directory of the spool that this process holds; `files` is the place for what waits."""

    def __init__(self, path: Path, description: Description, lock: int, *, room: int = MAX_SPOOL_BYTES) -> None:
        self.path = path
        self.files = path / _FILES
        self.description = description
        self.room = room
        """How many bytes it may hold."""
        self._lock = lock
        _held.add(self)

    @property
    def origin(self) -> Origin:
        """The process that filled it."""
        return self.description.origin

    def keys(self) -> list[str]:
        """Return the keys of the files that wait; links are not followed and not listed."""
        return [path.relative_to(self.files).as_posix() for path in _files_below(self.files)]

    def bytes(self) -> int:
        """Return how much the files hold."""
        return _bytes_below(self.files)

    def remove(self) -> None:
        """Delete the directory with all in it: everything is delivered."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Leave the directory to the next process, or to another part of this one."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def remove_or_leave(self) -> None:
        """Leave the directory if something waits in it, else delete it."""
        if self.bytes():
            self.leave()
        else:
            self.remove()

    def forget_in_child(self) -> None:
        """Give up the copy of the lock that a forked child has: the lock is the parent's alone."""
        self.leave()


_held: WeakSet[SpoolDirectory] = WeakSet()


def claim(destination: str, origin: Origin, *, form: Form = "files", part: str = "") -> SpoolDirectory:
    """Make the directory of a process for a destination, in the first place of the spool that can be written.

    Args:
        destination: The URL or path where the files belong.
        origin: The process whose files they are.
        form: What waits.
        part: Which part of the process keeps it, where several do so for one destination.

    Raises:
        SpoolUnavailable: No place can be written, or another process has this one's incarnation.
    """
    description = Description(normalized(destination), form, origin)
    name = f"{origin.incarnation}-{part}" if part else origin.incarnation
    problems: list[str] = []
    for root in (*roots(), None):
        if claimed := _claimed_in(root, name, description, problems):
            return claimed
    raise SpoolUnavailable(
        f"nothing for {destination} can wait on the local disk ({'; '.join(problems)}): set MLDIAG_SPOOL to a "
        "directory that this user can write"
    )


def abandoned(destination: str, *, form: Form = "files", key: str = "") -> Iterator[SpoolDirectory]:
    """Yield the directories that dead processes left for a destination, each held by us; leave or remove them.

    With `key` only those in which that file waits.
    """
    wanted = normalized(destination)
    for root in roots():
        for path in directories(root / folder_of(wanted, user=os.getuid())):
            if (key and not (path / _FILES / key).is_file()) or (found := take(path)) is None:
                continue
            if (found.description.destination, found.description.form) == (wanted, form):
                yield found
            else:
                found.leave()


def describe(path: Path) -> Description | None:
    """Return what a directory says of itself, None if it is not one of the spool's."""
    try:
        said = json.loads((path / _DESCRIPTION).read_text())
        if said["v"] != _VERSION or said["form"] not in {"files", "records"}:
            return None
        return Description(str(said["destination"]), said["form"], Origin(**said["origin"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def take(path: Path, *, of_others: bool = False) -> SpoolDirectory | None:
    """Return a directory whose process is gone, held by us; None if it lives, or this is not one of the spool's.

    Directories of other users, who could have us upload anything, count only with `of_others`.
    """
    with contextlib.suppress(OSError):  # removed by another process
        if not of_others and path.lstat().st_uid != os.getuid():
            return None
        if (path / _LOCK).exists() and (lock := _locked(path)) is not None:
            description = describe(path)
            if description is not None:
                return SpoolDirectory(path, description, lock)
            os.close(lock)
    return None


def _claimed_in(root: Path | None, name: str, description: Description, problems: list[str]) -> SpoolDirectory | None:
    """Make a directory in one place of the spool, without one in a new one; None, and the problem, if it cannot be."""
    try:
        place = _fresh(Path(temporary_folder(os.environ)), "mldiagnostics-") if root is None else _private(root)
        return _claimed(place, name, description)
    except OSError as error:
        problems.append(f"{root or temporary_folder(os.environ)}: {error.strerror or error}")
        return None


def _private(root: Path) -> Path:
    """Return the root, made for this user alone. Raises `OSError` if it cannot be, or is somebody else's."""
    if root != Path(os.environ.get("MLDIAG_SPOOL") or "/").absolute():
        root.parent.mkdir(parents=True, exist_ok=True)
        _make_private(root)
    else:  # the user has chosen it
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


def _fresh(parent: Path, prefix: str) -> Path:
    """Make a directory that nobody can have guessed."""
    directory = parent / f"{prefix}{os.urandom(8).hex()}"
    directory.mkdir(mode=0o700)
    return directory


def _make_private(directory: Path) -> None:
    """Make a directory that no other user can look into. Raises `OSError` if that is not ours to do."""
    with contextlib.suppress(FileExistsError):
        directory.mkdir(mode=0o700)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(0, f"{directory} belongs to another user, or is not a directory")
    if stat.S_IMODE(status.st_mode) & 0o077:
        directory.chmod(0o700)


def _claimed(root: Path, name: str, description: Description) -> SpoolDirectory:
    """Make a directory under another name, lock it, and give it its own: nobody sees it without its lock."""
    home = root / folder_of(description.destination, user=os.getuid())
    _make_private(home)
    _expire(root)
    room = MAX_SPOOL_BYTES - _bytes_below(root)
    fresh = _fresh(home, ".new-")
    try:
        lock = _lock_of(fresh)
        (fresh / _FILES).mkdir()
        said = {"v": _VERSION, **asdict(description)}
        (fresh / _DESCRIPTION).write_text(json.dumps(said))
        try:
            fresh.rename(home / name)
        except OSError as error:
            os.close(lock)
            if (home / name).exists():
                raise SpoolUnavailable(f"{home / name} is another process's, which has the same incarnation") from error
            raise
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return SpoolDirectory(home / name, description, lock, room=room)


def _lock_of(directory: Path) -> int:
    lock = _locked(directory)
    if lock is None:
        raise PermissionError(0, "its file system gives no locks")
    return lock


def _expire(root: Path) -> None:
    """Delete what dead processes left so long ago that nobody will upload it any more."""
    now = time.time()
    with contextlib.suppress(OSError):
        for path in (path for folder in directories(root) for path in directories(folder)):
            if is_expired(path.stat().st_mtime, now) and (found := take(path)) is not None:
                if is_expired(max((each.stat().st_mtime for each in _files_below(path / _FILES)), default=0.0), now):
                    warn_once(
                        "spool-expired",
                        f"{path}: {found.bytes()} bytes for {found.description.destination} waited over 30 days and "
                        "were deleted; upload what waits with python -m mldiagnostics.upload",
                    )
                    found.remove()
                else:
                    found.leave()


def _files_below(directory: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                yield path


def _bytes_below(directory: Path) -> int:
    total = 0
    for path in _files_below(directory):
        with contextlib.suppress(OSError):  # uploaded meanwhile
            total += path.stat().st_size
    return total


def _locked(directory: Path) -> int | None:
    """Lock the directory for as long as this process lives or the returned descriptor is open; None if it is taken."""
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _forget_in_child() -> None:
    for held in tuple(_held):
        held.forget_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
