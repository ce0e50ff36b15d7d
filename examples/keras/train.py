"""Keras training as a run, with a callback of a few lines.

pip install ./sdk tensorflow; python train.py; python -m mldiagnostics.runs mldiagnostics
"""

from typing import Any

import keras
import numpy as np
from mldiagnostics import MLRun, machinelearning_run, metrics


class RunCallback(keras.callbacks.Callback):
    """Records steps, metrics and validations of `fit`.

    Args:
        run: run to record to.
    """

    def __init__(self, run: MLRun) -> None:
        super().__init__()
        self._run = run
        self._step = 0

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002 - the names of Keras
        """Record the start of a step; `batch` starts at 0 in each epoch."""
        self._run.step(self._step)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """Record the metrics of a step."""
        for name, value in (logs or {}).items():
            metrics.record(name, value, step=self._step)
        self._step += 1

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Record the start of a validation."""
        self._run.recorder.record_custom_badput_event_start_time(custom_badput_event_type="EVAL")

    def on_test_end(self, logs: Any = None) -> None:
        """Record the end of a validation, and its metrics."""
        self._run.recorder.record_custom_badput_event_end_time(custom_badput_event_type="EVAL")
        for name, value in (logs or {}).items():
            metrics.record(name, value, step=self._step, labels={"split": "validation"})


def main() -> None:
    """Train for two epochs of ten steps."""
    random = np.random.default_rng(0)
    inputs = random.normal(size=(80, 4)).astype(np.float32)
    targets = inputs.sum(axis=1, keepdims=True)
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    with machinelearning_run("keras", configs={"optimizer": model.optimizer.get_config()}) as run:
        model.fit(
            inputs,
            targets,
            batch_size=8,
            epochs=2,
            verbose=0,
            validation_data=(inputs[:16], targets[:16]),
            callbacks=[RunCallback(run)],
        )


if __name__ == "__main__":
    main()
