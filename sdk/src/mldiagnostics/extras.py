"""Check for optional packages without loading them."""

from __future__ import annotations

from importlib.util import find_spec

from mldiagnostics.errors import MissingExtraError


def require(module: str, *, extra: str, needed_for: str) -> None:
    """Raise `MissingExtraError` unless `module`, a part of the extra, is installed."""
    try:
        spec = find_spec(module)
    except ModuleNotFoundError:  # a package above it is missing
        spec = None
    if spec is None:
        raise MissingExtraError(extra=extra, needed_for=needed_for)
