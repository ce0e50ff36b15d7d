"""The forwarder to MLflow, with the real one and its file store."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.sinks import sink_maker
from support.programs.examples import python, run_example, run_source

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


MAKE = """
import mlflow
from mldiagnostics.sinks import sink_maker
from mldiagnostics.errors import ConfigurationError
try:
    sink_maker("mlflow:")
except ConfigurationError as error:
    print(error)
print(sink_maker("mlflow:0123abc").name)
"""


@pytest.mark.peers
def test_without_an_mlflow_run_it_is_rejected_with_an_action(tmp_path: Path) -> None:
    refusal, name = run_source(MAKE, tmp_path, environment="trackers").out.splitlines()
    assert "call mlflow.start_run() before" in refusal
    assert name == "mlflow:0123abc"


DEAD_SERVER = """
import mlflow
import mldiagnostics as m
try:  # loads all that the sink needs, which may take longer than the end of a run may
    mlflow.MlflowClient().log_metric("0123abc", "loss", 0.5)
except mlflow.MlflowException:
    pass
with m.machinelearning_run("job", sinks=["jsonl:", "mlflow:0123abc"], log_system_metrics=False):
    for step in range(50):
        m.metrics.record("loss", 0.5, step=step)
"""


@pytest.mark.peers
def test_a_dead_server_is_only_logged(tmp_path: Path) -> None:
    variables = {"MLFLOW_TRACKING_URI": "http://127.0.0.1:9", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "0"}
    example = run_source(DEAD_SERVER, tmp_path, environment="trackers", **variables)
    assert [step for step, _ in example.series("loss")] == list(range(50))
    assert example.row.phase == "Completed"
    assert "MLflow run 0123abc" in example.err


def test_without_mlflow_it_is_rejected_with_the_package() -> None:
    with pytest.raises(ConfigurationError, match="pip install mlflow"):
        sink_maker("mlflow:")
