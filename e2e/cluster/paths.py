"""Paths of the repository and of the cache of tools and images."""

from pathlib import Path

from cluster import ambient

E2E = Path(__file__).resolve().parent.parent
REPOSITORY = E2E.parent


def cache() -> Path:
    """Return the cache folder: `$MLDIAG_CACHE`, else the user's cache."""
    environment = ambient.environment()
    if chosen := environment.get("MLDIAG_CACHE"):
        return Path(chosen)
    return Path(environment.get("XDG_CACHE_HOME") or ambient.home() / ".cache") / "mldiagnostics"
