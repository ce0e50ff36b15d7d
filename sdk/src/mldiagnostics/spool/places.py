"""Where the spool of this user is, and whether anything waits in it; loads little, since every process looks."""

from __future__ import annotations

import os
from pathlib import Path

from mldiagnostics.spool.decisions import candidates, folder_of, normalized


def has_any(destination: str) -> bool:
    """Tell whether anything is kept for a destination; costs a look at a directory or two."""
    folder = folder_of(normalized(destination), user=os.getuid())
    return any(directories(root / folder) for root in roots())


def roots() -> list[Path]:
    """Return the places where the spool of this user can be, whether they exist or not."""
    return [Path(path).absolute() for path in candidates(os.environ, user=os.getuid())]


def directories(folder: Path) -> list[Path]:
    """Return the processes' directories in a destination's folder, in order of their names."""
    try:
        with os.scandir(folder) as entries:
            found = [e.path for e in entries if e.is_dir(follow_symlinks=False) and not e.name.startswith(".")]
    except OSError:
        return []
    return [Path(path) for path in sorted(found)]
