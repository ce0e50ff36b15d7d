"""Optional parts of the package: whether one is installed, told without loading it."""

from __future__ import annotations

from importlib.util import find_spec

from mldiagnostics.errors import MissingExtraError


def require(module: str, *, extra: str, needed_for: str) -> None:
    """Raise `MissingExtraError` unless `module`, which the extra brings, is installed."""
    try:
        found = find_spec(module)
    except ModuleNotFoundError:  # a package above it is missing
        found = None
    if found is None:
        raise MissingExtraError(extra=extra, needed_for=needed_for)
