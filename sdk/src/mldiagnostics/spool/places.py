"""The directories that can hold this user's spool.

Imports little, since every process with a run looks here.
"""

from __future__ import annotations

import os
from pathlib import Path

from mldiagnostics.spool.decisions import candidates, folder_of, normalized


def has_any(destination: str) -> bool:
    """Return whether anything waits for a destination; lists one or two directories."""
    folder = folder_of(normalized(destination), user=os.getuid())
    return any(directories(root / folder) for root in roots())


def roots() -> list[Path]:
    """Return the directories that can hold this user's spool; they may not exist."""
    return [Path(path).absolute() for path in candidates(os.environ, user=os.getuid())]


def directories(folder: Path) -> list[Path]:
    """Return the processes' directories in a destination's folder, sorted by name."""
    try:
        with os.scandir(folder) as entries:
            paths = [e.path for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []
    return [Path(path) for path in sorted(paths)]
