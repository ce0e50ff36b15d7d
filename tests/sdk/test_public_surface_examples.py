"""Programs as Google's documentation has them: with one line changed, and unchanged beside mldiagnostics-shim."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import read_records
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.runs.row import RunRow

pytestmark = pytest.mark.peers

FORMS = ["mldiagnostics", "google_cloud_mldiagnostics"]

BEGIN = """
from PACKAGE import machinelearning_run, metric_types, metrics, xprof
import jax, jax.numpy as jnp, os

run = machinelearning_run(
    name="my-run",
    run_group="experiments",
    configs={"epochs": 10, "batch_size": 32, "optimizer": {"name": "adam", "lr": 1e-3}},
    project="my-project",
    region="us-central1-a",
    gcs_path=os.environ["MLDIAG_STORAGE"],
    log_system_metrics=False,
)

@jax.jit
def train_step(x):
    return jnp.tanh(x @ x).mean()

x = jnp.ones((64, 64))
"""

METRICS = """
for step in range(5):
    loss = train_step(x)
    metrics.record(metric_types.MetricType.LOSS, loss, step=step)
    metrics.record(metric_types.MetricType.LEARNING_RATE, 0.001, step)
    metrics.record("custom_metric", step * 2, step=step, labels={"phase": "warmup"}, record_on_all_hosts=True)
metrics.record_metrics(
    [
        {"metric_name": metric_types.MetricType.STEP_TIME, "value": 0.5},
        {"metric_name": "perplexity", "value": 12.5, "step": 4, "labels": {"split": "eval"}},
    ],
    step=5,
)
"""

CONFIGS = """
run.configs.update({"epochs": 20})
run.configs.userConfigs["batch_size"] = 64
"""

PROFILES = {
    "object": "profiler = xprof()\nprofiler.start()\ntrain_step(x).block_until_ready()\nprofiler.stop()",
    "object with a session": "p = xprof(run)\np.start(session_id='s1')\ntrain_step(x).block_until_ready()\np.stop()",
    "context manager": "with xprof():\n    train_step(x).block_until_ready()",
    "decorator": "@xprof()\ndef train(y):\n    return train_step(y).block_until_ready()\ntrain(x)",
    "these hosts": "with xprof(process_index_list=[0]):\n    train_step(x).block_until_ready()",
}


def left_by(body: str, package: str, folder: Path) -> tuple[Programs, RunRow]:
    programs = Programs(folder)
    ended = programs.run((BEGIN + body).replace("PACKAGE", package), env={"JAX_PLATFORMS": "cpu"})
    assert ended.code == 0, ended.err
    assert ended.err.count("\n") == 1, ended.err  # the line that says where the run is
    row = programs.the_run()
    assert (row.name, row.run_group, row.phase) == ("my-run", "experiments", "Completed")
    return programs, row


@pytest.mark.parametrize("package", FORMS)
def test_a_program_of_the_peer_records_its_metrics(package: str, tmp_path: Path) -> None:
    programs, row = left_by(METRICS, package, tmp_path)
    points = [
        (record.name, record.step, dict(record.labels), record.unit)
        for record in read_records(programs.storage, row.run_id, kinds={"metric"})
    ]
    assert [each for each in points if each[0] == "loss"] == [("loss", step, {}, "1") for step in range(5)]
    assert ("learning_rate", 4, {}, "1") in points
    assert ("custom_metric", 4, {"phase": "warmup"}, "1") in points
    assert points[-2:] == [("step_time", 5, {}, "s"), ("perplexity", 4, {"split": "eval"}, "1")]


@pytest.mark.parametrize("package", FORMS)
def test_a_program_of_the_peer_records_its_configurations(package: str, tmp_path: Path) -> None:
    _, row = left_by(CONFIGS, package, tmp_path)
    user = {"epochs": 20, "batch_size": 64, "optimizer": {"name": "adam", "lr": 1e-3}}
    assert row.configs["user"] == user
    assert row.configs["software"]["framework"] == "JAX"


@pytest.mark.parametrize("form", PROFILES)
def test_a_program_of_the_peer_records_a_profile(form: str, tmp_path: Path) -> None:
    programs, row = left_by(PROFILES[form], FORMS[0], tmp_path)
    [trace] = (tmp_path / "storage" / row.run_id / "plugins/profile").glob("*/*.xplane.pb")
    assert b"train_step" in trace.read_bytes()
    assert (trace.parent.name == "s1") == (form == "object with a session")
    assert programs.storage in row.directory


def test_the_current_run_is_available_to_programs(tmp_path: Path) -> None:
    body = """
from PACKAGE.core import global_manager
from PACKAGE.custom_types import mlrun_types
assert global_manager.get_current_run() is run
assert run.run_phase is mlrun_types.RunPhase.PHASE_ACTIVE
assert global_manager.get_current_run_id() == run.name
"""
    left_by(body, FORMS[1], tmp_path)
