"""PyTorch Lightning: a logger that makes its training a run, or a part of the run that has begun, and its goodput.

Trainer(..., logger=MLDiagnosticsLogger(), callbacks=[MLDiagnosticsCallback()])
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
"""How long the end of a training may wait until its metrics are written."""

_PACKAGE = "lightning.pytorch" if "lightning" in sys.modules else "pytorch_lightning"
"""The library has two names; the program has imported the one whose classes count."""

_Callback: Any = import_module(f"{_PACKAGE}.callbacks").Callback
_Logger: Any = import_module(f"{_PACKAGE}.loggers").Logger
_rank_zero_only: Any = import_module(f"{_PACKAGE}.utilities").rank_zero_only


class MLDiagnosticsLogger(_Logger):  # type: ignore[misc]  # which base it has is known when it is imported
    """Records what is logged, and tells the run of the steps at which it is, unless the callback tells of all steps.

    Without a current run the first use begins one, with `arguments` for `machinelearning_run`. It is closed by the end
    of the program, since tests may follow.
    """

    def __init__(self, name: str = "lightning", run: MLRun | None = None, **arguments: Any) -> None:
        super().__init__()
        self._name = name
        self._run = run
        self._arguments = arguments
        self.tells_steps = True

    @property
    def experiment(self) -> MLRun:
        """The run."""
        if self._run is None or self._run.closed:
            self._run = current() or machinelearning_run(
                **{"name": self._name, "framework": Framework.PYTORCH, **self._arguments}
            )
        return self._run

    @property
    def name(self) -> str:
        """What the run is called; Lightning puts checkpoints into a folder of that name."""
        return self._name

    @property
    def version(self) -> str:
        """The id of the run; Lightning puts its checkpoints into a folder of that name."""
        return str(self.experiment.run_id)

    @_rank_zero_only  # type: ignore[untyped-decorator]
    def log_metrics(self, metrics: Mapping[str, Any], step: int | None = None) -> None:
        """Record metrics; `step` is the number of optimizer steps before."""
        run = self.experiment
        if step is not None and self.tells_steps:
            run.step(step)
        for name, value in metrics.items():
            recorded.record(name, value, step=step)

    @_rank_zero_only  # type: ignore[untyped-decorator]
    def log_hyperparams(self, params: Any, *_: Any, **__: Any) -> None:
        """Keep hyperparameters, a dict or a namespace, with the run's configuration."""
        self.experiment.configs.update(params if hasattr(params, "keys") else vars(params))

    def finalize(self, status: str) -> None:  # noqa: ARG002 - an exception is seen by the run itself
        """Write what is recorded; the run goes on."""
        if self._run is not None:
            self._run.recording.flush(FLUSH_TIMEOUT_S)


class MLDiagnosticsCallback(_Callback):  # type: ignore[misc]  # as above
    """Tells the run of every step as it begins, and accounts for validation, as the event EVAL.

    The run is the one that has begun, else the logger's.
    """

    def __init__(self) -> None:
        super().__init__()
        self._run: MLRun | None = None

    def setup(self, trainer: Any, *_: Any, **__: Any) -> None:
        """Find the run, and tell the logger that its word for steps is not needed."""
        loggers = [logger for logger in trainer.loggers if isinstance(logger, MLDiagnosticsLogger)]
        for logger in loggers:
            logger.tells_steps = False
        self._run = current()
        if self._run is None and loggers and trainer.is_global_zero:
            self._run = loggers[0].experiment

    def on_train_batch_start(self, trainer: Any, *_: Any) -> None:
        """Say that a step begins; several batches may belong to one."""
        if self._run is not None:
            self._run.step(trainer.global_step)

    def on_validation_start(self, *_: Any) -> None:
        """Say that validation begins."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_start_time(custom_badput_event_type="EVAL")

    def on_validation_end(self, *_: Any) -> None:
        """Say that validation is over."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_end_time(custom_badput_event_type="EVAL")
