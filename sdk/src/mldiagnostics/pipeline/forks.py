"""No fork while one of our threads is in the middle of an import: the child would wait for its end for ever.

A module that is half loaded at the moment of a fork stays so in the child, and whoever imports it there waits for a
thread that no longer exists. Our threads load stores, drivers and clients when they need them, often in the first
seconds of a run, which is when data loaders are forked.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from types import FrameType

_OURS = "mldiagnostics-"
"""How the names of our threads begin."""

PATIENCE_S = 5.0
"""How long a fork waits at most; loading the largest client takes a second or two on a busy machine."""

_PAUSE_S = 0.001
_MACHINERY = "<frozen importlib._bootstrap>"


def wait_for_imports(patience_s: float = PATIENCE_S) -> bool:
    """Return when none of our threads imports anything; false, with a complaint, if that takes too long."""
    deadline = time.monotonic() + patience_s
    while name := _importing():
        if time.monotonic() >= deadline:
            warn_once(
                "fork", f"a fork went ahead while {name} was loading modules: the child may hang if it needs them"
            )
            return False
        time.sleep(_PAUSE_S)
    return True


def _importing() -> str:
    """Return the name of one of our threads that is importing, empty if none is."""
    ours = {thread.ident: thread.name for thread in threading.enumerate() if thread.name.startswith(_OURS)}
    ours.pop(threading.get_ident(), None)
    frames = sys._current_frames() if ours else {}  # noqa: SLF001 - a documented function
    return next((name for ident, name in ours.items() if ident is not None and _loads(frames.get(ident))), "")


def _loads(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _MACHINERY and frame.f_code.co_name == "_find_and_load":
            return True
        frame = frame.f_back
    return False
