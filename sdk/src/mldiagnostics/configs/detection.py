"""Which framework a program uses, by what it has imported; nothing is imported here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mldiagnostics.configs.kinds import Framework

if TYPE_CHECKING:
    from collections.abc import Collection

FRAMEWORKS = ("jax", "torch_xla", "torch", "tensorflow")
"""Import names in the order of choice: JAX programs import the others for their input, and torch_xla imports torch."""

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
    """Choose from the names that are `imported`: first those `in_use`, whose devices the program has initialised."""
    names = [*(name for name in FRAMEWORKS if name in in_use), *FRAMEWORKS]
    return next((_KINDS[name] for name in names if name in imported), Framework.DETECT)


def imported() -> frozenset[str]:
    """Return the frameworks that are imported to the end: one that is being imported cannot be used yet."""
    return frozenset(name for name in FRAMEWORKS if _is_imported(name))


def is_installed(name: str) -> bool:
    """Tell whether a framework could be imported."""
    from importlib.util import find_spec  # noqa: PLC0415 - not with the first import

    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # something else has put a module of that name in the way
        return False


def _is_imported(name: str) -> bool:
    module = sys.modules.get(name)
    return module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False)


def _has_devices(name: str) -> bool:
    """Tell whether a framework has initialised its devices, which a mere import of it does not do."""
    if name == "jax":
        return bool(getattr(sys.modules.get("jax._src.xla_bridge"), "_backends", None))
    return name == "torch" and getattr(sys.modules.get("torch.cuda"), "_initialized", False) is True
