"""Hugging Face `Trainer`: a callback that makes its training a run, or a part of the run that has begun.

Trainer(..., callbacks=[MLDiagnosticsCallback()])
"""

from __future__ import annotations

import time
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
    """Tells the run of each step and its duration, and records what the trainer logs.

    Without a current run the first training begins one: with `arguments` for `machinelearning_run`, and else named
    after `TrainingArguments.run_name`. It is closed by the end of the program, since evaluation may follow.
    """

    def __init__(self, run: MLRun | None = None, **arguments: Any) -> None:
        self._run = run
        self._arguments = arguments
        self._began: float | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Find or begin the run, and keep the configurations of training and model with it."""
        run = self._run or current() or self._begin(args)
        self._run = run
        configs = {"training": args.to_dict()}
        if (config := getattr(others.get("model"), "config", None)) is not None:
            configs["model"] = config.to_dict() if hasattr(config, "to_dict") else config
        run.configs.update(configs)

    def on_step_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Say that a step begins."""
        self._began = time.monotonic()
        if self._run is not None:
            self._run.step(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **others: Any) -> None:  # noqa: ARG002
        """Record how long the step took on this process, in seconds; `global_step` counts it already."""
        if self._began is not None:
            metrics.record(MetricType.STEP_TIME, time.monotonic() - self._began, step=state.global_step - 1)

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **others: Any) -> None:  # noqa: ARG002
        """Record what is logged, once for all processes, which log the same."""
        if state.is_world_process_zero:
            for name, value in (logs or {}).items():
                metrics.record(_NAMES.get(name, name), value, step=state.global_step)

    def _begin(self, args: Any) -> MLRun:
        name = getattr(args, "run_name", None) or DEFAULT_NAME
        return machinelearning_run(**{"name": name, "framework": Framework.PYTORCH, **self._arguments})
