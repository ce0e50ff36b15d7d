"""The client of Google's SDK writes metrics to the sinks of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.compat.global_manager import get_logging_client
from mldiagnostics.compat.logging_client import LoggingClient, NoOpLoggingClient
from mldiagnostics.run import machinelearning_run
from mldiagnostics.runs import read_records

if TYPE_CHECKING:
    from pathlib import Path


def test_metrics_are_recorded_in_the_run_of_the_process(tmp_path: Path) -> None:
    with machinelearning_run(name="written", storage=str(tmp_path)) as run:
        LoggingClient("my-project").write_metric("loss", 0.5, run.run_id, "us-central1", 3, {"a": "b"})
        get_logging_client().write_metrics(
            [{"metric_name": "mfu", "value": [0.25], "step": None, "labels": None}, {"metric_name": "bad"}],
            run_id=run.run_id,
            location="us-central1",
        )
        for wrong in (None, [("loss", 1.0)], [None], 5):
            LoggingClient().write_metrics(wrong)  # type: ignore[arg-type]
        NoOpLoggingClient().write_metric("nothing", 1.0, run.run_id, "us-central1")
    records = {each.name: each for each in read_records(str(tmp_path), run.run_id, kinds={"metric"})}
    assert records.keys() == {"loss", "mfu"}
    assert (records["loss"].value, records["loss"].step, dict(records["loss"].labels)) == (0.5, 3, {"a": "b"})
