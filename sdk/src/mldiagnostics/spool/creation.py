"""Creation of spool directories, and deletion of those that have expired.

The spool is in the first of its places (see `decisions.candidates`) that this user can write and that no other user
can read.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.pipeline.sink import SinkUnavailable
from mldiagnostics.spool.decisions import MAX_SPOOL_BYTES, folder_of, is_expired, normalized, temporary_folder
from mldiagnostics.spool.directory import (
    DESCRIPTION,
    FILES,
    VERSION,
    Description,
    Form,
    SpoolDirectory,
    acquire_directory,
    bytes_below,
    files_below,
    try_lock,
)
from mldiagnostics.spool.places import directories, roots
from mldiagnostics.spool.private_files import make_private

if TYPE_CHECKING:
    from mldiagnostics.identity.origin import Origin


class SpoolUnavailable(SinkUnavailable):
    """No local directory can be used as a spool."""


def create_directory(destination: str, origin: Origin, *, form: Form = "files", part: str = "") -> SpoolDirectory:
    """Create and lock this process's spool directory for a destination.

    Args:
        destination: The URL or path where the files belong.
        origin: The process that writes the files.
        form: The content of the directory.
        part: Distinguishes the directories of one process for one destination.

    Raises:
        SpoolUnavailable: No directory can be written, or another process has the same incarnation.
    """
    description = Description(normalized(destination), form, origin)
    name = f"{origin.incarnation}-{part}" if part else origin.incarnation
    problems: list[str] = []
    for root in (*roots(), None):
        if directory := _create_in(root, name, description, problems):
            return directory
    raise SpoolUnavailable(
        f"{destination}: no local directory can hold its spool ({'; '.join(problems)}); set MLDIAG_SPOOL to a "
        "directory that this user can write"
    )


def _create_in(root: Path | None, name: str, description: Description, problems: list[str]) -> SpoolDirectory | None:
    """Create the directory below `root`; add a problem and return None if that fails.

    Without `root` it is created below a new temporary directory.
    """
    try:
        if root is not None:
            return _create(_private(root), name, description)
        base = _new_directory(Path(temporary_folder(os.environ)), "mldiagnostics-")
        try:
            return _create(base, name, description)
        except BaseException:
            shutil.rmtree(base, ignore_errors=True)
            raise
    except OSError as error:
        problems.append(f"{root or temporary_folder(os.environ)}: {error.strerror or error}")
        return None


def _private(root: Path) -> Path:
    """Create the root for this user alone. Raises `OSError` if that is not possible."""
    if root != Path(os.environ.get("MLDIAG_SPOOL") or "/").absolute():
        root.parent.mkdir(parents=True, exist_ok=True)
        make_private(root)
    else:  # the user's own choice
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    return root


def _new_directory(parent: Path, prefix: str) -> Path:
    """Create a directory whose name cannot be guessed."""
    directory = parent / f"{prefix}{os.urandom(8).hex()}"
    directory.mkdir(mode=0o700)
    return directory


def _create(root: Path, name: str, description: Description) -> SpoolDirectory:
    """Create and lock the directory under a hidden name, then rename it.

    So it is never visible without its lock.
    """
    home = root / folder_of(description.destination, user=os.getuid())
    make_private(home)
    _delete_expired(root)
    capacity_bytes = MAX_SPOOL_BYTES - bytes_below(root)
    hidden = _new_directory(home, ".new-")
    with contextlib.ExitStack() as undo:
        undo.callback(shutil.rmtree, hidden, ignore_errors=True)
        lock = _lock(hidden)
        undo.callback(os.close, lock)
        (hidden / FILES).mkdir()
        (hidden / DESCRIPTION).write_text(json.dumps({"v": VERSION, **asdict(description)}))
        try:
            hidden.rename(home / name)
        except OSError as error:
            if (home / name).exists():
                raise SpoolUnavailable(f"{home / name}: another process has the same incarnation") from error
            raise
        undo.pop_all()
    return SpoolDirectory(home / name, description, lock, capacity_bytes=capacity_bytes)


def _lock(directory: Path) -> int:
    lock = try_lock(directory)
    if lock is None:
        raise PermissionError(0, "its file system does not support locks")
    return lock


def _delete_expired(root: Path) -> None:
    """Delete directories of ended processes that nothing has uploaded for 30 days."""
    now = time.time()
    with contextlib.suppress(OSError):
        for path in (path for folder in directories(root) for path in directories(folder)):
            if is_expired(path.stat().st_mtime, now) and (directory := acquire_directory(path)) is not None:
                if is_expired(max((each.stat().st_mtime for each in files_below(path / FILES)), default=0.0), now):
                    warn_once(
                        "spool-expired",
                        f"{path}: deleted {directory.bytes()} bytes for {directory.description.destination} that "
                        "waited more than 30 days; upload waiting files with python -m mldiagnostics.upload",
                    )
                    directory.remove()
                else:
                    directory.release()
