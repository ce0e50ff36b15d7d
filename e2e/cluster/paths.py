"""Paths of the repository and of the cache of tools and images."""

import os
from pathlib import Path

E2E = Path(__file__).resolve().parent.parent
REPOSITORY = E2E.parent


def cache() -> Path:
    """Return the cache folder: `$MLDIAG_CACHE`, else the user's cache."""
    if chosen := os.environ.get("MLDIAG_CACHE"):
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mldiagnostics"
