"""Where tools, images and the bare cluster are kept; all of it outside the repository."""

import os
from pathlib import Path

E2E = Path(__file__).resolve().parent.parent
REPOSITORY = E2E.parent


def cache() -> Path:
    """Folder of everything that is slow to make and safe to keep: `$MLDIAG_CACHE`, else the user's cache."""
    if chosen := os.environ.get("MLDIAG_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mldiagnostics"
