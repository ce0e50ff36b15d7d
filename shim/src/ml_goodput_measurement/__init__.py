"""The goodput modules of `mldiagnostics` under the name of ml-goodput-measurement."""

from __future__ import annotations

from importlib import import_module

from mldiagnostics.compat.aliases import ALIASES
from mldiagnostics_shim.finder import install
from mldiagnostics_shim.originals import warn_of_original

__all__ = [
    "checkpoint_badput_calculator",
    "gcp_metrics",
    "goodput",
    "goodput_cache",
    "goodput_elastic",
    "goodput_utils",
    "monitoring",
    "monitoring_elastic",
]

install()
warn_of_original(__name__)


def __getattr__(name: str) -> object:
    if name in __all__:
        return import_module(ALIASES[__name__][name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
