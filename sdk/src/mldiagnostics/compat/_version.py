"""The version of this package, by the name of google-cloud-mldiagnostics."""

from __future__ import annotations

import mldiagnostics

__all__ = ["get_version"]


def get_version() -> str:
    """Return the version of the installed package, such as `0.1.0`."""
    return mldiagnostics.__version__
