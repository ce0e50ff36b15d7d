"""Metrics for a Weights & Biases run that the program has started: `sinks=["jsonl:", "wandb:"]`.

W&B takes rows whose steps never go back. What comes later than a row that the program itself has logged with a higher
step is left out there; each such row counts among the run's complaints. Metrics without a step go to the row that is
being filled, so that none moves W&B's own count.
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
    """Return the maker for `wandb:`. Raises `ConfigurationError` if the program has started no W&B run."""
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if run is None:
        raise ConfigurationError(f"{url!r}: W&B has no run in this process: call wandb.init() before")
    return SinkMaker(url, lambda _: WandbSink(run))


class WandbSink:
    """Adds rows to a run; it neither begins nor ends it."""

    pace = BatchPolicy(records=256, gather_s=0.5)
    durable = True

    def __init__(self, run: Any) -> None:
        self._run = run

    def open(self) -> None:
        """Do nothing: the program has opened it."""

    def write(self, batch: Sequence[Record]) -> None:
        """Log the batch's metrics, those of one step as one row."""
        metrics = (record for record in batch if record.kind == "metric")
        for step, records in groupby(metrics, lambda record: record.step):
            row = dict(pair for record in records for pair in tagged(record))
            self._log(row, self._run.step if step is None else step)

    def flush(self) -> None:
        """Do nothing: W&B's own process has it."""

    def close(self) -> None:
        """Leave the run open: it is the program's."""

    def _log(self, row: dict[str, float], step: int) -> None:
        if step < self._run.step:
            warn_once(
                "wandb-late", f"W&B is at step {self._run.step} and takes no row of step {step}: it is left out there"
            )
            return
        try:
            self._run.log(row, step=step)
        except Exception as error:
            raise SinkRefused(f"W&B does not take metrics any more: {error}") from error
