"""The forwarder to MLflow, with the real one and its file store."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks import sink_maker
from support.examples import python, run_example

if TYPE_CHECKING:
    from pathlib import Path

HISTORIES = """
import json, mlflow
client = mlflow.MlflowClient()
[run] = client.search_runs(["0"])
histories = {key: [(m.step, m.value) for m in client.get_metric_history(run.info.run_id, key)]
             for key in run.data.metrics}
print(json.dumps([run.info.status, histories]))
"""
LOSSES = [[step, 1 / (1 + step)] for step in range(20)]
ACCURACIES = [[step, step / 20] for step in range(20)]


@pytest.mark.peers
def test_metrics_are_in_the_programs_run_and_in_our_files(tmp_path: Path) -> None:
    store = {"MLFLOW_TRACKING_URI": f"file://{tmp_path}/mlruns", "MLFLOW_ALLOW_FILE_STORE": "true"}
    example = run_example("trackers/with_mlflow.py", tmp_path, environment="trackers", **store)
    assert example.row.phase == "Completed"
    assert [list(point) for point in example.series("loss")] == LOSSES
    read = subprocess.run(
        [python("trackers"), "-c", HISTORIES], env=store, capture_output=True, text=True, check=True, timeout=120
    )
    status, histories = json.loads(read.stdout)
    assert status == "FINISHED"
    assert histories.pop("accuracy/split_train") == ACCURACIES
    assert histories == {"loss": LOSSES}


def test_without_a_run_of_mlflow_it_is_refused_with_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"call mlflow\.start_run\(\) before"):
        sink_maker("mlflow:")


def test_a_run_may_be_named() -> None:
    assert sink_maker("mlflow:0123abc").name == "mlflow:0123abc"
