"""A sink for the Weights & Biases run of the program: `wandb:`.

W&B rejects rows whose step is below the last one. If the program itself has logged a higher step, such rows are dropped
and counted in the run's complaints. Metrics without a step go to the current row, so that they do not change
W&B's step.
"""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused
from mldiagnostics.sinks.tensorboard import tagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.pipeline.records import Record


def maker(url: str) -> SinkMaker:
    """Return the sink maker for `wandb:`.

    Raises:
        ConfigurationError: the program has no W&B run.
    """
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if run is None:
        raise ConfigurationError(
            f"sink {url!r}: W&B has no run in this process; call wandb.init() before machinelearning_run"
        )
    return SinkMaker(url, lambda _: WandbSink(run))


class WandbSink:
    """Adds rows to a W&B run, without starting or ending it."""

    batch_policy = BatchPolicy(records=256, gather_s=0.5)
    durable = True

    def __init__(self, run: Any) -> None:
        self._run = run

    def open(self) -> None:
        """Do nothing: the run belongs to the program."""

    def write(self, batch: Sequence[Record]) -> None:
        """Log the metrics of the batch, one row per step."""
        metrics = (record for record in batch if record.kind == "metric")
        for step, records in groupby(metrics, lambda record: record.step):
            row = dict(pair for record in records for pair in tagged(record))
            self._log(row, self._run.step if step is None else step)

    def flush(self) -> None:
        """Do nothing: W&B's own process has the rows."""

    def close(self) -> None:
        """Do nothing: the run belongs to the program."""

    def _log(self, row: dict[str, float], step: int) -> None:
        if step < self._run.step:
            warn_once("wandb-late", f"sink wandb: row of step {step} dropped, W&B is already at step {self._run.step}")
            return
        try:
            self._run.log(row, step=step)
        except Exception as error:
            raise SinkRefused(f"W&B rejects metrics: {error}") from error
