"""Hugging Face `Trainer`: a callback that makes its training a run, or a part of the run that has begun.

Trainer(..., callbacks=[MLDiagnosticsCallback()])
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
"""Hugging Face's names of metrics that have a name of ours."""


class MLDiagnosticsCallback(TrainerCallback):  # type: ignore[misc]  # transformers is not there for mypy
    """Tells the run of each step and its duration, records what the trainer logs, and accounts for what is no step.

    The trainer says when an evaluation or a checkpoint is done: it began with what it said before.

    Without a current run the first training begins one: with `arguments` for `machinelearning_run`, and else named
    after `TrainingArguments.run_name`. It is closed by the end of the program, since evaluation may follow.
    """

    def __init__(self, run: MLRun | None = None, **arguments: Any) -> None:
        self._run = run
        self._arguments = arguments
        self._began: float | None = None
        self._said = _now()
        self._fetching: datetime | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Find or begin the run, and keep the configurations of training and model with it."""
        run = self._run or current() or self._begin(args)
        self._run = run
        configs = {"training": args.to_dict()}
        if (config := getattr(others.get("model"), "config", None)) is not None:
            configs["model"] = config.to_dict() if hasattr(config, "to_dict") else config
        run.configs.update(configs)
        self._said = _now()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Note when the trainer begins to wait for the first batch of an epoch."""
        self._fetching = _now()

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Say that a step begins."""
        self._began = time.monotonic()
        if self._run is not None:
            if self._fetching is not None:
                self._run.recorder.record_data_loading_start_time(self._fetching)
                self._run.recorder.record_data_loading_end_time()
                self._fetching = None
            self._run.step(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record how long the step took on this process, in seconds; `global_step` counts it already."""
        if self._began is not None:
            metrics.record(MetricType.STEP_TIME, time.monotonic() - self._began, step=state.global_step - 1)
        self._said = _now()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Note when it was: evaluations and checkpoints of the epoch follow."""
        self._said = _now()

    def on_evaluate(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Account for an evaluation, as the event EVAL."""
        if self._run is not None:
            self._run.recorder.record_custom_badput_event_start_time(self._said, "EVAL")
            self._run.recorder.record_custom_badput_event_end_time(None, "EVAL")
        self._said = _now()

    def on_save(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Account for a checkpoint, which holds the state after `global_step` steps."""
        if self._run is not None:
            self._run.recorder.record_checkpoint_save_start_time(state.global_step, self._said)
            self._run.recorder.record_checkpoint_save_end_time(state.global_step)
        self._said = _now()

    def on_train_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Note when it was: an evaluation may follow."""
        self._said = _now()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:  # noqa: ARG002
        """Record what is logged, once for all processes, which log the same."""
        if state.is_world_process_zero:
            for name, value in (logs or {}).items():
                metrics.record(_NAMES.get(name, name), value, step=state.global_step)

    def _begin(self, args: Any) -> MLRun:
        name = getattr(args, "run_name", None) or DEFAULT_NAME
        return machinelearning_run(**{"name": name, "framework": Framework.PYTORCH, **self._arguments})


def _now() -> datetime:
    return datetime.now(timezone.utc)
