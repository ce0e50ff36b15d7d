"""The framework to profile: the run's own if it is imported, else the first found."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from mldiagnostics.configs.detection import FRAMEWORKS, imported, is_installed
from mldiagnostics.profiling.recorder import CannotRecord

if TYPE_CHECKING:
    from collections.abc import Container

    from mldiagnostics.profiling.recorder import TraceRecorder

_ADAPTERS = {
    "jax": "JaxRecorder",
    "torch_xla": "TorchXlaRecorder",
    "torch": "TorchRecorder",
    "tensorflow": "TensorFlowRecorder",
}
"""Import name -> class of its adapter."""

_OWN = {"JAX": ("jax",), "PYTORCH": ("torch_xla", "torch"), "UNKNOWN": ()}
"""Value of a run's `framework` -> import names."""


def choose(framework: str, imported: Container[str]) -> str:
    """Return the import name of the framework to profile. Raises `CannotRecord`."""
    own = _own(framework)
    for name in (*own, *FRAMEWORKS):
        if name in _ADAPTERS and name in imported:
            return name
    known = "JAX, PyTorch, PyTorch/XLA or TensorFlow"
    if own and not any(name in _ADAPTERS for name in own):
        raise CannotRecord(f"{framework} cannot be profiled; import {known} before profiling")
    raise CannotRecord(f"there is nothing to profile: none of {known} is imported; import one before profiling")


def is_awaited(framework: str, imported: Container[str], installed: Container[str]) -> bool:
    """Return whether the framework to profile may still be imported.

    That is the run's own, or any if the run names none. Raises `CannotRecord` if no framework is installed.
    """
    own = [name for name in _own(framework) if name in installed]
    if own:
        return not any(name in imported for name in own)
    if any(name in imported for name in FRAMEWORKS):
        return False
    if not any(name in installed for name in FRAMEWORKS):
        choose(framework, imported)
    return True


def recorder(framework: str) -> TraceRecorder:
    """Return the recorder of the framework to profile. Raises `CannotRecord`."""
    name = choose(framework, imported())
    try:
        adapter = import_module(f"mldiagnostics.profiling.adapters.{name}")
        instance: TraceRecorder = getattr(adapter, _ADAPTERS[name])()
    except (ImportError, AttributeError) as error:  # perhaps another module of that name
        raise CannotRecord(f"{name} has no usable profiler: {error}") from error
    return instance


def recorder_once_imported(framework: str) -> TraceRecorder | None:
    """Return the recorder, None while its framework may still be imported.

    Raises `CannotRecord`.
    """
    installed = {name for name in FRAMEWORKS if is_installed(name)}
    return None if is_awaited(framework, imported(), installed) else recorder(framework)


def _own(framework: str) -> tuple[str, ...]:
    return _OWN.get(framework.upper(), (framework.lower(),))
