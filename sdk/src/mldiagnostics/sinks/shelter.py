"""A directory on the local disk where records outlive the process until their destination can have them.

`<root>/<hash of the destination>/<incarnation>/`, locked by the process that fills it as long as it lives; the next
process with records for the same destination finds those of dead ones. `<root>` is `MLDIAG_SPOOL`, else a directory of
this user's below the system's one for temporary files.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.origin import Origin
from mldiagnostics.sinks.model import SinkUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

_ORIGIN = "origin.json"
_LOCK = ".lock"


class Shelter:
    """A directory that is ours: whose records it holds says `origin`; `files` is the place for them."""

    def __init__(self, directory: Path, origin: Origin, lock: int) -> None:
        self.files = directory / "files"
        self.origin = origin
        self._directory = directory
        self._lock = lock

    def remove(self) -> None:
        """Delete the directory with all in it: everything is delivered."""
        shutil.rmtree(self._directory, ignore_errors=True)
        self.leave()

    def leave(self) -> None:
        """Leave the directory to the next process."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def bytes(self) -> int:
        """Return how much the files hold."""
        return sum(path.stat().st_size for path in self.files.rglob("*") if path.is_file())


def claim(destination: str, origin: Origin) -> Shelter:
    """Make the shelter of this process's records for a destination. Raises `SinkUnavailable` if the disk refuses."""
    directory = _home(destination) / origin.incarnation
    try:
        (directory / "files").mkdir(parents=True, exist_ok=True)
        lock = _lock(directory)
        (directory / _ORIGIN).write_text(json.dumps(asdict(origin)))
    except OSError as error:
        raise SinkUnavailable(
            f"records for {destination} cannot wait in {directory}: {error.strerror}: set MLDIAG_SPOOL to a directory"
            " that this user can write"
        ) from error
    if lock is None:
        raise SinkUnavailable(f"{directory} is another process's, which has the same incarnation {origin.incarnation}")
    return Shelter(directory, origin, lock)


def abandoned(destination: str) -> Iterator[Shelter]:
    """Yield the shelters that dead processes left for a destination, each ours from then on; leave or remove them."""
    home = _home(destination)
    for directory in sorted(home.iterdir()) if home.is_dir() else ():
        with contextlib.suppress(OSError, ValueError, TypeError):  # removed or being made by another process
            lock = _lock(directory)
            if lock is None:
                continue
            try:
                origin = Origin(**json.loads((directory / _ORIGIN).read_text()))
            except (OSError, ValueError, TypeError):
                os.close(lock)
                raise
            yield Shelter(directory, origin, lock)


def _home(destination: str) -> Path:
    import hashlib  # noqa: PLC0415 - brings OpenSSL, 4 MiB that a process with local files never needs

    return _root() / hashlib.sha256(destination.encode()).hexdigest()[:16]


def _root() -> Path:
    chosen = os.environ.get("MLDIAG_SPOOL")
    if chosen:
        return Path(chosen).absolute()
    root = Path(tempfile.gettempdir()) / f"mldiagnostics-{os.getuid()}"
    with contextlib.suppress(OSError):
        root.mkdir(mode=0o700, exist_ok=True)
        if root.lstat().st_uid != os.getuid():  # somebody else was there first
            return Path(tempfile.mkdtemp(prefix="mldiagnostics-"))
    return root


def _lock(directory: Path) -> int | None:
    """Lock the directory for as long as this process lives or the returned descriptor is open; None if it is taken."""
    lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock
