"""A sink for an MLflow run of the program: `mlflow:` or `mlflow:<run id>`.

Labels and devices are part of a metric's key, as in TensorBoard's tags. The sink's own thread calls MLflow, so a slow
or dead tracking server does not delay the training.
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

BATCH_POLICY = BatchPolicy(records=500, gather_s=1.0)
"""One call per second at most: each is a request to the server or a lock of its database."""

LIMIT = 1000
"""Most metrics in one call of MLflow."""

_REFUSALS = frozenset({"INVALID_PARAMETER_VALUE", "INVALID_STATE", "PERMISSION_DENIED", "RESOURCE_DOES_NOT_EXIST"})
_INVALID_KEY = re.compile(r"[^\w\-./ :]")


def maker(url: str) -> SinkMaker:
    """Return the sink maker for `mlflow:` (the active run) or `mlflow:<run id>`.

    Raises:
        ConfigurationError: MLflow is not installed, or the thread has no active run.
    """
    if find_spec("mlflow") is None:
        raise ConfigurationError(f"sink {url!r}: MLflow is not installed; run pip install mlflow")
    run_id = url.removeprefix("mlflow:") or _active_run_id()
    if run_id is None:
        raise ConfigurationError(
            f"sink {url!r}: MLflow has no active run in this thread; call mlflow.start_run() before "
            "machinelearning_run, or write mlflow:<run id>"
        )
    return SinkMaker(url, lambda _: MlflowSink(run_id))


class MlflowSink:
    """Adds metrics to an MLflow run, without starting or ending it."""

    batch_policy = BATCH_POLICY
    durable = True

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._client: Any = None

    def open(self) -> None:
        """Create the client of the tracking server."""
        from mlflow import MlflowClient  # noqa: PLC0415 - slow, so in the sink's thread

        self._client = MlflowClient()

    def write(self, batch: Sequence[Record]) -> None:
        """Log the metrics of the batch; without a step they have step 0, as in MLflow."""
        from mlflow.entities import Metric  # noqa: PLC0415
        from mlflow.exceptions import MlflowException  # noqa: PLC0415

        points = (
            Metric(_INVALID_KEY.sub("_", tag), number, int(1000 * record.t), record.step or 0)
            for record in batch
            if record.kind == "metric"
            for tag, number in tagged(record)
        )
        try:
            while chunk := list(islice(points, LIMIT)):
                self._client.log_batch(self._run_id, metrics=chunk, synchronous=True)
        except MlflowException as error:
            kind = SinkRefused if error.error_code in _REFUSALS else SinkUnavailable
            raise kind(f"MLflow run {self._run_id}: {error.message}") from error

    def flush(self) -> None:
        """Do nothing: `write` is synchronous."""

    def close(self) -> None:
        """Do nothing: the run belongs to the program."""


def _active_run_id() -> str | None:
    mlflow = sys.modules.get("mlflow")
    run = mlflow.active_run() if mlflow is not None else None
    return run.info.run_id if run is not None else None
