"""Filters of the list, and the fields of the row of a real run."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics import runs
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs import attempt_rows, configs, find_run, list_runs
from mldiagnostics.store import open_store
from support.programs.processes import Programs
from support.run_files import put_records

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.emulator_faults import FaultyProxy


def put(root: Path, run: str, **fields: Any) -> None:
    open_store(str(root)).put(f"{run}/run.json", json.dumps({"runId": run, "phase": "Completed", **fields}).encode())


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["d", "c", "b", "a"]),
        ({"name": "train-*"}, ["c", "b", "a"]),
        ({"name": "train-1"}, ["a"]),
        ({"run_group": "g"}, ["b", "a"]),
        ({"namespace": "ml"}, ["c"]),
        ({"phase": "Failed"}, ["d", "c"]),
        ({"phase": "Failed", "name": "train-?"}, ["c"]),
        ({"since": 3.5}, ["d"]),
        ({"since": 50}, []),
        ({"limit": 2}, ["d", "c"]),
        ({"limit": 0}, []),
    ],
)
def test_filters_narrow_the_list(tmp_path: Path, filters: dict[str, Any], expected: list[str]) -> None:
    put(tmp_path, "a", name="train-1", created=1, runGroup="g")
    put(tmp_path, "b", name="train-2", created=2, ended=3, runGroup="g")
    put(tmp_path, "c", name="train-3", created=3, phase="Failed", namespace="ml")
    put(tmp_path, "d", name="serve", created=4, phase="Active", heartbeat={"t": 5, "intervalSeconds": 1})
    assert [row.run_id for row in list_runs(str(tmp_path), now=60, **filters)] == expected


@pytest.mark.parametrize("phase", [["Active"], {"Failed": 1}, 7, None])
def test_a_phase_that_is_not_a_text_hides_no_run(tmp_path: Path, phase: object) -> None:
    put(tmp_path, "a", created=1)
    put(tmp_path, "b", created=2, phase=phase, worldSize=1, incarnation="aaaaaaaa")
    record = Record("phase", 3.0, "Active", payload={"host": "h"})
    put_records(open_store(str(tmp_path)), "b", "a0-r0-aaaaaaaa-00001", record)
    assert [(row.run_id, row.phase) for row in list_runs(str(tmp_path))] == [("b", "Active"), ("a", "Completed")]


def test_a_folder_without_a_run_is_named_before_runs_that_start_so(tmp_path: Path) -> None:
    put(tmp_path, "train-2")
    put(tmp_path, "train-3")
    open_store(str(tmp_path)).put("train/run.json", b"")
    with pytest.raises(ConfigurationError, match=r"^'train': not a run in .*: its run\.json is missing or cannot be"):
        find_run(str(tmp_path), "train")
    with pytest.raises(ConfigurationError, match=r"^'trai': 3 runs in .* have an id that starts so"):
        find_run(str(tmp_path), "trai")


def test_the_records_of_a_process_that_has_ended_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a", worldSize=1)
    monkeypatch.setattr("mldiagnostics.runs.record_queries.record_files", lambda _: pytest.fail("read"))
    assert [row.run_id for row in list_runs(str(tmp_path))] == ["a"]


def test_runs_of_a_bucket_are_read_at_the_same_time(gcs_bucket: str, gcs_faults: FaultyProxy) -> None:
    store = open_store(f"gs://{gcs_bucket}")
    names = [f"run-{number}" for number in range(40)]
    for name in names:
        store.put(f"{name}/run.json", json.dumps({"runId": name, "created": 1}).encode())
    gcs_faults.most_at_once = 0
    assert [row.run_id for row in list_runs(f"gs://{gcs_bucket}")] == sorted(names)
    assert gcs_faults.most_at_once > 1


INJECTED = {
    "GKE_DIAGON_IDENTIFIER": json.dumps({
        "clustername": "train-cluster", "namespace": "ml", "metadata.kind": "JobSet", "metadata.name": "trainer"
    }),
    "GKE_DIAGON_METADATA": json.dumps({"creation-timestamp": "2026-04-24T03:04:05Z"}),
}  # fmt: skip
PROGRAM = """
import sys
from mldiagnostics import machinelearning_run
run = machinelearning_run("job", run_group="g", configs={"lr": 0.1}, log_system_metrics=False)
run.step(7)
sys.exit(int(sys.argv[1]))
"""


def test_a_row_knows_the_workload_and_the_attempts(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    for attempt, code in enumerate((3, 0)):
        assert programs.run(PROGRAM, str(code), env={**INJECTED, "MLDIAG_ATTEMPT": str(attempt)}).code == code
    row = find_run(programs.storage, "38ecfc8a")
    assert (row.name, row.run_group, row.cluster, row.namespace) == ("job", "g", "train-cluster", "ml")
    assert row.workload is not None
    assert (row.workload["kind"], row.workload["name"]) == ("JobSet", "trainer")
    assert (row.phase, row.attempt, row.hosts, row.world_size, row.step) == ("Completed", 1, 1, 1, 7)
    assert (row.storage, row.directory) == (programs.storage, f"{programs.storage}/{row.run_id}")
    assert (row.url, row.goodput, row.sessions) == (None, None, ())
    assert [(each.attempt, each.phase, each.reason) for each in attempt_rows(row)] == [
        (0, "Failed", "ExitCode"),
        (1, "Completed", ""),
    ]
    assert configs(row) == configs(row.directory)
    assert configs(row)["user"] == {"lr": 0.1}
    shown = row.to_json()
    assert (shown["displayName"], shown["progress"]["step"], shown["hosts"]) == ("job", 7, {"reporting": 1})
    assert shown["startTime"][:10] == time.strftime("%Y-%m-%d", time.gmtime(row.started))
    assert json.dumps([shown, *(each.to_json() for each in attempt_rows(row))])


def test_configurations_need_a_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no run\.json"):
        configs(str(tmp_path / "nothing"))


SURFACE = {
    *(
        "AttemptRow",
        "EventRow",
        "FindingRow",
        "MetricRow",
        "MetricSeries",
        "RankRow",
        "RunRow",
        "SeriesReader",
        "SessionFile",
    ),
    *("SessionRow", "attempt_rows", "configs", "events", "find_run", "findings", "goodput", "goodput_over_time"),
    *("last_values", "list_runs", "metrics", "ranks"),
    *("ranks_of", "read_records", "run_at", "series", "sessions", "step_times", "with_goodput"),
}


def test_the_public_names_are_these_and_documented() -> None:
    assert set(runs.__all__) == SURFACE
    for name in SURFACE:
        assert getattr(runs, name).__doc__, name
