"""`mldiagnostics` under the import name of Google's SDK, for unchanged programs."""

from __future__ import annotations

import mldiagnostics
from mldiagnostics import __all__ as __all__
from mldiagnostics_shim.finder import install
from mldiagnostics_shim.originals import warn_of_original

install()
warn_of_original(__name__)


def __getattr__(name: str) -> object:
    return getattr(mldiagnostics, name)


def __dir__() -> list[str]:
    return dir(mldiagnostics)
