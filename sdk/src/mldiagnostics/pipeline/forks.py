"""Delay forks while one of our threads imports a module, or initialises TLS.

The child would wait for that for ever.

A module that is partly loaded at a fork stays so in the child, where an import of it waits for a thread that does not
exist; so does OpenSSL, which its first context initialises under a lock. Our threads load stores, drivers and clients
on demand, often in the first seconds of a run, when data loaders are forked.
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
"""Prefix of the names of our threads."""

TIMEOUT_S = 5.0
"""Longest delay of a fork; loading the largest client takes a second or two on a busy machine."""

_PAUSE_S = 0.001
_LOADING = (
    ("<frozen importlib._bootstrap>", frozenset({"_find_and_load"})),
    ("/ssl.py", frozenset({"__new__", "create_default_context", "load_default_certs"})),
)
"""Ends of the names of files, and the functions in them that a fork must not interrupt."""


def wait_for_imports(timeout_s: float = TIMEOUT_S) -> bool:
    """Wait until none of our threads imports a module or makes a context of TLS.

    Return False, with a warning, after `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while name := _importing():
        if time.monotonic() >= deadline:
            warn_once(
                "fork",
                f"fork while thread {name} was loading modules; the child may hang if it uses them",
            )
            return False
        time.sleep(_PAUSE_S)
    return True


def _importing() -> str:
    """Return the name of a thread of ours that loads something, else an empty text."""
    ours = {thread.ident: thread.name for thread in threading.enumerate() if thread.name.startswith(_OURS)}
    ours.pop(threading.get_ident(), None)
    frames = sys._current_frames() if ours else {}  # noqa: SLF001 - a documented function
    return next((name for ident, name in ours.items() if ident is not None and _loads(frames.get(ident))), "")


def _loads(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if any(code.co_name in names and code.co_filename.endswith(file) for file, names in _LOADING):
            return True
        frame = frame.f_back
    return False
