"""Metrics for an MLflow run that the program has started: `sinks=["jsonl:", "mlflow:"]`, or `mlflow:<run id>`.

A metric's labels and devices become a part of its key, as TensorBoard's tags do. MLflow is called by the sink's own
thread, so a tracking server that is slow or gone costs the training nothing.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.tensorboard import tagged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.pipeline.records import Record

PACE = BatchPolicy(records=500, gather_s=1.0)
"""A call for at most one second of records: each is a request to the server or a lock of its database."""

LIMIT = 1000
"""How many metrics MLflow takes at once."""

_REFUSALS = frozenset({"INVALID_PARAMETER_VALUE", "INVALID_STATE", "PERMISSION_DENIED", "RESOURCE_DOES_NOT_EXIST"})
_NO_KEY = re.compile(r"[^\w\-./ :]")


def maker(url: str) -> SinkMaker:
    """Return the maker for `mlflow:` (the active run of the calling thread) or `mlflow:<run id>`.

    Raises `ConfigurationError` if the program has not started one, or MLflow is not installed.
    """
    if find_spec("mlflow") is None:
        raise ConfigurationError(f"{url!r} needs MLflow: pip install mlflow")
    run_id = url.removeprefix("mlflow:") or _active_run_id()
    if run_id is None:
        raise ConfigurationError(
            f"{url!r}: MLflow has no active run in this thread: call mlflow.start_run() before machinelearning_run, "
            "or name one: mlflow:<run id>"
        )
    return SinkMaker(url, lambda _: MlflowSink(run_id))


class MlflowSink:
    """Adds metrics to a run; it neither begins nor ends it."""

    pace = PACE
    durable = True

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._client: Any = None

    def open(self) -> None:
        """Make a client for the program's tracking server."""
        from mlflow import MlflowClient  # noqa: PLC0415 - takes a second, and is this thread's

        self._client = MlflowClient()

    def write(self, batch: Sequence[Record]) -> None:
        """Log the batch's metrics; a metric without a step counts as step 0, as MLflow has it."""
        from mlflow.entities import Metric  # noqa: PLC0415
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        found = (
            Metric(_NO_KEY.sub("_", tag), number, int(1000 * record.t), record.step or 0)
            for record in batch
            if record.kind == "metric"
            for tag, number in tagged(record)
        )
        try:
            while part := list(islice(found, LIMIT)):
                self._client.log_batch(self._run_id, metrics=part, synchronous=True)
        except MlflowException as error:
            kind = SinkRefused if error.error_code in _REFUSALS else SinkUnavailable
            raise kind(f"MLflow run {self._run_id}: {error.message}") from error

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Leave the run open: it is the program's."""


def _active_run_id() -> str | None:
    mlflow = sys.modules.get("mlflow")
    run = mlflow.active_run() if mlflow is not None else None
    return run.info.run_id if run is not None else None
