"""Compilations that JAX reports, as spans of the program's startup.

Only the outermost of JAX's durations counts.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from mldiagnostics.goodput.recording.recorder import GoodputRecorder

_PHASES = frozenset(
    {
        "/jax/core/compile/jaxpr_trace_duration",
        "/jax/core/compile/jaxpr_to_mlir_module_duration",
        "/jax/core/compile/backend_compile_duration",
    }
)
"""JAX's phases from a Python function to a program; each can contain another one."""


class Compilations:
    """Records JAX's compilations on the thread that created it, until it is closed.

    Compilations of other threads run beside the training. JAX reports the start of a phase (to its listeners for
    numbers, which old versions do not have) and its duration at the end; a phase inside another one is part of it.
    """

    def __init__(self, recorder: GoodputRecorder) -> None:
        self._recorder: GoodputRecorder | None = recorder
        self._thread = threading.get_ident()
        self._depth = 0
        self._listens = False

    def listen(self) -> bool:
        """Start listening; return false while the program has not imported JAX."""
        monitoring = sys.modules.get("jax.monitoring") if "jax" in sys.modules else None
        if self._listens or monitoring is None:
            return self._listens
        self._listens = True
        try:
            if hasattr(monitoring, "register_scalar_listener"):
                monitoring.register_scalar_listener(self._on_start)
            monitoring.register_event_duration_secs_listener(self._on_end)
        except Exception as error:  # noqa: BLE001 - another version may have another signature
            warn_once("compilation", f"JAX: this version does not report compilations: {error!r}")
        return True

    def close(self) -> None:
        """Stop recording; JAX keeps the listeners, since some versions cannot remove them."""
        self._recorder = None

    def _on_start(self, event: str, _: float, **__: Any) -> None:
        if event in _PHASES and threading.get_ident() == self._thread:
            self._depth += 1

    def _on_end(self, event: str, duration: float, **_: Any) -> None:
        if event not in _PHASES or threading.get_ident() != self._thread:
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._recorder is not None:
            end = time.time()
            self._recorder.record_program_startup_start_time(end - duration)
            self._recorder.record_program_startup_end_time(end)
