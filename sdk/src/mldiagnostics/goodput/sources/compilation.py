"""Compilation as JAX tells of it: the outermost of its durations, as spans of the program's startup."""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once

if TYPE_CHECKING:
    from mldiagnostics.goodput.recorder import GoodputRecorder

_PHASES = frozenset(
    {
        "/jax/core/compile/jaxpr_trace_duration",
        "/jax/core/compile/jaxpr_to_mlir_module_duration",
        "/jax/core/compile/backend_compile_duration",
    }
)
"""What happens on the way from a Python function to a program; each may have another one inside."""


class Compilations:
    """Records what JAX compiles on the thread that made this, until it is closed.

    What other threads compile happens beside the training. JAX says when a phase begins (by its listeners for numbers,
    which old versions have not) and how long it took when it is over; one inside another is part of that.
    """

    def __init__(self, recorder: GoodputRecorder) -> None:
        self._recorder: GoodputRecorder | None = recorder
        self._thread = threading.get_ident()
        self._depth = 0
        self._listens = False

    def listen(self) -> bool:
        """Listen from now on; false while the program has not imported JAX, which is not done here."""
        monitoring = sys.modules.get("jax.monitoring") if "jax" in sys.modules else None
        if self._listens or monitoring is None:
            return self._listens
        self._listens = True
        try:
            if hasattr(monitoring, "register_scalar_listener"):
                monitoring.register_scalar_listener(self._begins)
            monitoring.register_event_duration_secs_listener(self._ends)
        except Exception as error:  # noqa: BLE001 - another version may want another call
            warn_once("compilation", f"this version of JAX does not tell of compilations: {error!r}")
        return True

    def close(self) -> None:
        """Hear nothing more; JAX keeps the listeners, not every version gives them back."""
        self._recorder = None

    def _begins(self, event: str, _: float, **__: Any) -> None:
        if event in _PHASES and threading.get_ident() == self._thread:
            self._depth += 1

    def _ends(self, event: str, duration: float, **_: Any) -> None:
        if event not in _PHASES or threading.get_ident() != self._thread:
            return
        self._depth = max(0, self._depth - 1)
        if self._depth == 0 and self._recorder is not None:
            end = time.time()
            self._recorder.record_program_startup_start_time(end - duration)
            self._recorder.record_program_startup_end_time(end)
