"""Detect the framework of a program from its imported modules."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mldiagnostics.configs.kinds import Framework

if TYPE_CHECKING:
    from collections.abc import Collection

FRAMEWORKS = ("jax", "torch_xla", "torch", "tensorflow")
"""Import names, the preferred first: JAX programs import others for their input, torch_xla imports torch."""

_KINDS = {
    "jax": Framework.JAX,
    "torch_xla": Framework.PYTORCH,
    "torch": Framework.PYTORCH,
    "tensorflow": Framework.TENSORFLOW,
}


def detect() -> Framework:
    """Return the framework of this program, `Framework.DETECT` while none is imported."""
    return chosen(imported(), {name for name in FRAMEWORKS if _has_devices(name)})


def chosen(imported: Collection[str], in_use: Collection[str]) -> Framework:
    """Return the framework of the `imported` names, preferring those `in_use`."""
    names = [*(name for name in FRAMEWORKS if name in in_use), *FRAMEWORKS]
    return next((_KINDS[name] for name in names if name in imported), Framework.DETECT)


def imported() -> frozenset[str]:
    """Return the frameworks whose import is complete."""
    return frozenset(name for name in FRAMEWORKS if _is_imported(name))


def is_installed(name: str) -> bool:
    """Return whether a framework is installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - not with the first import

    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # a module of this name without spec
        return False


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _has_devices(name: str) -> bool:
    """Return whether a framework has initialised its devices."""
    if name == "jax":
        return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))
    return name == "torch" and getattr(sys.modules.get("torch.cuda"), "_initialized", False) is True
