"""PyTorch Lightning: a logger that records a run, and a callback for goodput.

Example:
    >>> Trainer(..., logger=MLDiagnosticsLogger(), callbacks=[MLDiagnosticsCallback()])  # doctest: +SKIP
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from mldiagnostics import metrics as recorded
from mldiagnostics.run import Framework, current, machinelearning_run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.run import MLRun

__all__ = ["MLDiagnosticsCallback", "MLDiagnosticsLogger"]

FLUSH_TIMEOUT_S = 10.0
"""Timeout for writing the metrics at the end of a training."""

_PACKAGE = "lightning.pytorch" if "lightning" in sys.modules else "pytorch_lightning"
"""The library has two names; the base classes must come from the one that the program imports."""

_Callback: Any = import_module(f"{_PACKAGE}.callbacks").Callback
_Logger: Any = import_module(f"{_PACKAGE}.loggers").Logger
_rank_zero_only: Any = import_module(f"{_PACKAGE}.utilities").rank_zero_only


class MLDiagnosticsLogger(_Logger):  # type: ignore[misc]  # the base class is known at import time
    """Records logged metrics, and their steps unless the callback records all steps.

    A run that the logger starts stays open until the end of the program, because tests may follow.

    Args:
        name: name of a new run.
        run: run to record to; default: the current run, or a new one on first use.
        **arguments: further arguments of `machinelearning_run` for a new run.
    """

    def __init__(self, name: str = "lightning", run: MLRun | None = None, **arguments: Any) -> None:
        super().__init__()
        self._name = name
        self._run = run
        self._arguments = arguments
        self.tells_steps = True

    @property
    def experiment(self) -> MLRun:
        """The run; started on first use."""
        if self._run is None or self._run.closed:
            self._run = current() or machinelearning_run(
                **{"name": self._name, "framework": Framework.PYTORCH, **self._arguments}
            )
        return self._run

    @property
    def name(self) -> str:
        """Name of the run; Lightning uses it as a directory of checkpoints."""
        return self._name

    @property
    def version(self) -> str:
        """Id of the run; Lightning uses it as a directory of checkpoints."""
        return str(self.experiment.run_id)

    @_rank_zero_only  # type: ignore[untyped-decorator]
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Record metrics; `step` is the number of optimizer steps so far."""
        run = self.experiment
        if step is not None and self.tells_steps:
            run.step(step)
        for name, value in metrics.items():
            recorded.record(name, value, step=step)

    @_rank_zero_only  # type: ignore[untyped-decorator]
    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        """Add hyperparameters (a dict or a namespace) to the run's configuration."""
        self.experiment.configs.update(params if hasattr(params, "keys") else vars(params))

    def finalize(self, status: str) -> None:  # noqa: ARG002 - the run detects exceptions itself
        """Flush the records; the run stays open."""
        if self._run is not None:
            self._run.recording.flush(FLUSH_TIMEOUT_S)


class MLDiagnosticsCallback(_Callback):  # type: ignore[misc]  # as above
    """Records the start of every step, and validation as event EVAL.

    The run is the current one, else the logger's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._run: MLRun | None = None

    def setup(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Find the run, and stop the logger from recording steps."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, MLDiagnosticsLogger)]
        for logger in loggers:
            logger.tells_steps = False
        self._run = current()
        if self._run is None and loggers and trainer.is_global_zero:
            self._run = loggers[0].experiment

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Record the start of a step; several batches may belong to one step."""
        if self._run is not None:
            self._run.step(trainer.global_step)

    def on_validation_start(self, *_: Any) -> None:
        """Record the start of validation."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_start_time(custom_badput_event_type="EVAL")

    def on_validation_end(self, *_: Any) -> None:
        """Record the end of validation."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_end_time(custom_badput_event_type="EVAL")
