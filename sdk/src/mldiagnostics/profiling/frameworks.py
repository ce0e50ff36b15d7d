"""Which framework of this process is profiled: the run's own if it is imported, else the first one that is."""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from mldiagnostics.profiling.recorder import CannotRecord

if TYPE_CHECKING:
    from collections.abc import Container

    from mldiagnostics.profiling.recorder import Recorder

_ADAPTERS = {
    "jax": "JaxRecorder",
    "torch_xla": "TorchXlaRecorder",
    "torch": "TorchRecorder",
    "tensorflow": "TensorFlowRecorder",
}
"""By import name, in the order of asking: JAX programs import the others for their input, torch_xla imports torch."""

_OWN = {"JAX": ("jax",), "PYTORCH": ("torch_xla", "torch")}
"""What the words of a run's `framework` stand for."""


def choose(framework: str, imported: Container[str]) -> str:
    """Return the import name of the framework to profile, for a run that says `framework`. Raises `CannotRecord`."""
    own = _own(framework)
    for name in (*own, *_ADAPTERS):
        if name in _ADAPTERS and name in imported:
            return name
    known = "JAX, PyTorch, PyTorch/XLA or TensorFlow"
    if not any(name in _ADAPTERS for name in own):
        raise CannotRecord(f"{framework} cannot be profiled, and none of {known} is imported")
    raise CannotRecord(f"there is nothing to profile: none of {known} is imported yet; import it before profiling")


def recorder(framework: str, *, load: bool = False) -> Recorder:
    """Return the recorder for this process; `load` imports the run's framework if need be. Raises `CannotRecord`."""
    try:
        name = choose(framework, sys.modules)
    except CannotRecord:
        installed = [own for own in _own(framework) if load and own in _ADAPTERS and find_spec(own) is not None]
        if not installed:
            raise
        name = installed[0]
    try:
        adapter = import_module(f"mldiagnostics.profiling.adapters.{name}")
        made: Recorder = getattr(adapter, _ADAPTERS[name])()
    except (ImportError, AttributeError) as error:  # e.g. a module of that name that is not the framework
        raise CannotRecord(f"{name} is imported and has no profiler that can be used: {error}") from error
    return made


def _own(framework: str) -> tuple[str, ...]:
    return _OWN.get(framework.upper(), (framework.lower(),))
