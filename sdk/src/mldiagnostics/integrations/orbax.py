"""Orbax: a logger that accounts for the checkpoints of a `CheckpointManager`.

CheckpointManager(directory, logger=MLDiagnosticsLogger())
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbax.checkpoint.logging import AbstractLogger

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.lifecycle.current_run import current

if TYPE_CHECKING:
    from mldiagnostics.goodput.recorder import GoodputRecorder

__all__ = ["MLDiagnosticsLogger"]


class MLDiagnosticsLogger(AbstractLogger):  # type: ignore[misc]  # Orbax is not there for mypy
    """Records how long each save and restore held up the training, as Orbax measured it.

    Into the log of `recorder`, by default among the records of the current run. Every process should have one: Orbax
    saves and restores on all of them.
    """

    def __init__(self, recorder: GoodputRecorder | None = None) -> None:
        self._recorder = recorder

    def log_entry(self, msg: Any, *_: Any, **__: Any) -> None:
        """Take what Orbax says of a save or a restore that is over; anything else is nothing to account for."""
        recorder = self._recorder
        if recorder is None and (run := current()) is not None:
            recorder = run.recorder
        if recorder is None:
            warn_once("orbax", "a checkpoint is not accounted for: no run has begun, and the logger has no recorder")
            return
        recorder.record_entry(msg)
