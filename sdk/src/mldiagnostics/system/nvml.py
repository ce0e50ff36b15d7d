"""NVIDIA's driver through its own Python bindings (extra `gpu`).

The only module that imports them.
"""

from __future__ import annotations

import ctypes
from typing import Any

from mldiagnostics.errors import MissingExtraError

_LIBRARY = "libnvidia-ml.so.1"


def driver() -> Any:
    """Return the initialised bindings, None without a driver.

    Raises `MissingExtraError` if there is a driver and the extra `gpu` is not installed.
    """
    try:
        ctypes.CDLL(_LIBRARY)  # loaded first: the bindings take 17 MiB, also without a driver
    except OSError:
        return None
    try:
        import pynvml  # noqa: PLC0415 - an optional extra
    except ImportError:
        raise MissingExtraError(extra="gpu", needed_for="metrics of GPUs") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    return pynvml
