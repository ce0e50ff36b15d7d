"""Self-hosted diagnostics for ML workloads, importable without any third-party package.

`mldiagnostics.capture` takes profiles of running jobs, `mldiagnostics.store` keeps files and
`mldiagnostics.identity` names runs. What this module offers beyond the errors loads when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mldiagnostics.errors import (
    AlreadyStored,
    ConfigurationError,
    MissingExtraError,
    MLDiagnosticsError,
    NotStored,
    StoreError,
    StoreForbidden,
    StoreFull,
    StoreNotFound,
    StoreUnreachable,
)

if TYPE_CHECKING:
    from mldiagnostics.store import open_store

    __version__: str

__all__ = [
    "AlreadyStored",
    "ConfigurationError",
    "MLDiagnosticsError",
    "MissingExtraError",
    "NotStored",
    "StoreError",
    "StoreForbidden",
    "StoreFull",
    "StoreNotFound",
    "StoreUnreachable",
    "open_store",
]

_HOMES = {"open_store": "mldiagnostics.store"}


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module("importlib.metadata").version(__name__)
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
