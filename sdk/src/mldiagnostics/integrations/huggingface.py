"""Hugging Face `Trainer`: a callback that records its training as a run.

Example:
    >>> Trainer(..., callbacks=[MLDiagnosticsCallback()])  # doctest: +SKIP
"""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from mldiagnostics import metrics
from mldiagnostics.metric_types import MetricType
from mldiagnostics.run import Framework, current, machinelearning_run

if TYPE_CHECKING:
    from mldiagnostics.run import MLRun

__all__ = ["MLDiagnosticsCallback"]

DEFAULT_NAME = "huggingface"

_NAMES = {"grad_norm": MetricType.GRADIENT_NORM.value, "train_samples_per_second": MetricType.THROUGHPUT.value}
"""Names of metrics by the names of Hugging Face."""


class MLDiagnosticsCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not there for mypy
    """Records steps, step times, metrics, evaluations and checkpoints of a `Trainer`.

    The trainer only reports the end of an evaluation or a checkpoint; its start is the previous callback. A run that
    the callback starts stays open until the end of the program, because evaluations may follow.

    Args:
        run: run to record to; default: the current run, or a new one.
        **arguments: arguments of `machinelearning_run` for a new run; its default name is `TrainingArguments.run_name`.
    """

    def __init__(self, run: MLRun | None = None, **arguments: Any) -> None:
        self._run = run
        self._arguments = arguments
        self._step_started: float | None = None
        self._phase_started = _now()
        self._fetching: datetime | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Find or start the run, and record the configurations of training and model."""
        run = self._run or current() or self._start_run(args)
        self._run = run
        configs = {"training": args.to_dict()}
        if (config := getattr(others.get("model"), "config", None)) is not None:
            configs["model"] = config.to_dict() if hasattr(config, "to_dict") else config
        run.configs.update(configs)
        self._phase_started = _now()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Start the wait for the first batch of an epoch."""
        self._fetching = _now()

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record the start of a step."""
        self._step_started = time.monotonic()
        if self._run is not None:
            if self._fetching is not None:
                self._run.recorder.record_data_loading_start_time(self._fetching)
                self._run.recorder.record_data_loading_end_time()
                self._fetching = None
            self._run.step(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record the step time of this process in seconds; `global_step` counts the step."""
        if self._step_started is not None:
            metrics.record(MetricType.STEP_TIME, time.monotonic() - self._step_started, step=state.global_step - 1)
        self._phase_started = _now()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Store the time: evaluations and checkpoints of the epoch may follow."""
        self._phase_started = _now()

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record an evaluation as event EVAL."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_start_time(self._phase_started, "EVAL")
            self._run.recorder.record_custom_badput_event_end_time(None, "EVAL")
        self._phase_started = _now()

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record a checkpoint save of the state after `global_step` steps."""
        if self._run is not None:
            self._run.recorder.record_checkpoint_save_start_time(state.global_step, self._phase_started)
            self._run.recorder.record_checkpoint_save_end_time(state.global_step)
        self._phase_started = _now()

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Store the time: an evaluation may follow."""
        self._phase_started = _now()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:  # noqa: ARG002
        """Record logged metrics in one process: all processes log the same."""
        if state.is_world_process_zero:
            for name, value in (logs or {}).items():
                metrics.record(_NAMES.get(name, name), value, step=state.global_step)

    def _start_run(self, args: Any) -> MLRun:
        name = getattr(args, "run_name", None) or DEFAULT_NAME
        return machinelearning_run(**{"name": name, "framework": Framework.PYTORCH, **self._arguments})


def _now() -> datetime:
    return datetime.now(timezone.utc)
