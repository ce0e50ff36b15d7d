"""Runs whose files go to a bucket: there, not there, and behind a network that swallows everything."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.runs import find_run, list_runs, read_records

if TYPE_CHECKING:
    from support.programs.processes import Programs
    from support.servers.emulator import Emulator

TRAIN = """
import time
from mldiagnostics import machinelearning_run, metrics
run = machinelearning_run("job", storage="{storage}", log_system_metrics=False)
for step in range(3):
    run.step()
    metrics.record("loss", 1.0, step=step)
print("trained", flush=True)
run.close(timeout_s={limit})
"""


def environment(url: str) -> dict[str, str]:
    return {"STORAGE_EMULATOR_HOST": url, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true"}


def test_a_run_in_a_bucket_is_read_back(programs: Programs, gcs_emulator: Emulator, gcs_bucket: str) -> None:
    storage = f"gs://{gcs_bucket}/some/runs"
    ended = programs.run(TRAIN.format(storage=storage, limit=60), env=environment(gcs_emulator.url))
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    [row] = list_runs(storage)
    assert (row.name, row.phase, row.step) == ("job", "Completed", 2)
    assert find_run(storage, row.run_id).phase == "Completed"
    assert len(list(read_records(storage, row.run_id, kinds={"metric"}))) == 3


def test_a_bucket_that_is_not_there_does_not_stop_the_training(programs: Programs, gcs_emulator: Emulator) -> None:
    env = environment(gcs_emulator.url)
    ended = programs.run(TRAIN.format(storage="gs://no-such-bucket", limit=30), env=env)
    assert (ended.code, ended.out) == (0, "trained\n"), ended.err
    assert ended.err.count("cannot store files now") == 1, ended.err


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(3)"])
def test_a_network_that_swallows_everything_does_not_hold_the_training_up(programs: Programs, end: str) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=16) as silent:
        env = environment(f"http://127.0.0.1:{silent.getsockname()[1]}")
        ended = programs.run(TRAIN.format(storage="gs://bucket", limit=1) + end, env=env)  # within a limit of its own
    assert (ended.code, ended.out) == (3 if end else 0, "trained\n"), ended.err
