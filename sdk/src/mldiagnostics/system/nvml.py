"""NVIDIA's driver through its own Python bindings (extra `gpu`); the only module that imports them."""

from __future__ import annotations

import ctypes
from typing import Any

from mldiagnostics.errors import MissingExtraError

_LIBRARY = "libnvidia-ml.so.1"


def driver() -> Any:
    """Return the bindings, ready to be asked; None where no driver is. Raises `MissingExtraError`."""
    try:
        ctypes.CDLL(_LIBRARY)  # asked first: the bindings take 17 MiB, also where they find nothing
    except OSError:
        return None
    try:
        import pynvml  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError(extra="gpu", needed_for="metrics of GPUs") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
