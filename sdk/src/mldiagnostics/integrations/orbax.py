"""Orbax: a logger that records checkpoints for goodput.

Example:
    >>> CheckpointManager(directory, logger=MLDiagnosticsLogger())  # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orbax.checkpoint.logging import AbstractLogger

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.run import current

if TYPE_CHECKING:
    from mldiagnostics.goodput.recording.recorder import GoodputRecorder

__all__ = ["MLDiagnosticsLogger"]


class MLDiagnosticsLogger(AbstractLogger):  # type: ignore[misc]  # mypy runs without Orbax
    """Records how long each save and restore blocked the training.

    Use one in every process: Orbax saves and restores on all of them.

    Args:
        recorder: recorder to use; default: that of the current run.
    """

    def __init__(self, recorder: GoodputRecorder | None = None) -> None:
        self._recorder = recorder

    def log_entry(self, msg: Any, *_: Any, **__: Any) -> None:
        """Record the end of a save or a restore; ignore other entries."""
        recorder = self._recorder
        if recorder is None and (run := current()) is not None:
            recorder = run.recorder
        if recorder is None:
            warn_once(
                "orbax", "Orbax logger: a checkpoint is not recorded, there is no run; start one or pass `recorder`"
            )
            return
        recorder.record_entry(msg)
