"""Ranks and events of runs, read from their files of records."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.runs import events, find_run, ranks, read_records
from mldiagnostics.store import open_store
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store

POD = {
    "MLDIAG_POD_NAME": "trainer-1", "MLDIAG_POD_UID": "0b6a5f8d", "MLDIAG_NODE_NAME": "node-7", "MLDIAG_SLICE": "2",
    "MLDIAG_RANK": "3", "MLDIAG_WORLD_SIZE": "4", "MLDIAG_RUN_ID": "ab" * 32, "MLDIAG_ATTEMPT": "1",
}  # fmt: skip
PROGRAM = """
from mldiagnostics import machinelearning_run, metrics
with machinelearning_run("job", log_system_metrics=False) as run:
    for step in range(5):
        run.step(step)
    metrics.record("note", "checkpoint saved", step=4)
"""


@pytest.fixture(params=["local", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "storage")
    return f"gs://{request.getfixturevalue('gcs_bucket')}/some/runs"


@pytest.fixture
def store(storage: str) -> Store:
    return open_store(storage, timeout_s=30)


def put(store: Store, file: str, *records: Record) -> None:
    store.put(f"run/records/{file}.jsonl", "".join(map(encode, records)).encode())


def test_a_pod_is_described_as_its_process_does(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    assert programs.run(PROGRAM, env=POD).code == 0
    [rank] = ranks(f"{programs.storage}/{'ab' * 32}")
    assert (rank.rank, rank.attempt, rank.host, rank.pod, rank.pod_uid) == (3, 1, "trainer-1", "trainer-1", "0b6a5f8d")
    assert rank.port is None
    assert (rank.node, rank.slice, rank.phase, rank.step) == ("node-7", 2, "Completed", 4)
    assert rank.heartbeat is not None
    assert abs(rank.heartbeat - time.time()) < 60
    assert json.dumps(rank.to_json())


def test_events_are_in_the_order_of_time_without_the_steps(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    for attempt in range(2):
        assert programs.run(PROGRAM, env={"RUN_WORKLOAD_ID": "w", "MLDIAG_ATTEMPT": str(attempt)}).code == 0
    rows = events(programs.the_run())
    assert [(row.attempt, row.kind, row.name) for row in rows] == [
        (attempt, *each)
        for attempt in range(2)
        for each in (("phase", "Active"), ("event", "note"), ("phase", "Completed"))
    ]
    assert [(row.step, row.payload) for row in rows if row.name == "note"] == [(4, {"message": "checkpoint saved"})] * 2
    assert {row.kind for row in events(programs.the_run(), kinds={"phase"}, attempt=1)} == {"phase"}
    assert json.dumps([row.to_json() for row in rows])
    with pytest.raises(ConfigurationError, match="not kinds of events"):
        events(programs.the_run(), kinds={"metric"})


def test_only_the_ends_of_the_files_are_needed(storage: str, store: Store) -> None:
    noise = [Record("metric", 100.0, "loss", 1.0, step) for step in range(8000)]  # 900 kB
    active = Record("phase", 10.0, "Active", payload={"host": "h0", "intervalSeconds": 10.0})
    pace = {"stepTimeSeconds": 0.5}
    beats = [Record("heartbeat", 100.0 + beat, "alive", step=beat * 2, payload=pace) for beat in (0, 10, 20)]
    server = Record("session", 11.0, "on-demand", payload={"state": "listening", "port": 9999})
    put(store, "a0-r0-aaaaaaaa-00001", active, server, *noise)
    put(store, "a0-r0-aaaaaaaa-00002", *noise, *beats, *noise[:1000])
    put(store, "a0-r0-aaaaaaaa-00003")
    put(store, "a0-r1-bbbbbbbb-00001", active._replace(rank=1, payload={"host": "h1", "intervalSeconds": 10.0}))
    put(store, "a1-r1-cccccccc-00001", active._replace(rank=1, attempt=1, payload={"host": "h2"}))
    rows = ranks(f"{storage}/run", now=115.0)
    assert [(row.rank, row.attempt, row.host, row.phase) for row in rows] == [
        (0, 0, "h0", "Failed"),  # its last file has no sign of life yet
        (1, 1, "h2", "Active"),
    ]
    store.delete("run/records/a0-r0-aaaaaaaa-00003.jsonl")
    [row, _] = ranks(f"{storage}/run", now=125.0)
    assert (row.phase, row.heartbeat, row.step, row.step_time_s, row.port) == ("Active", 120.0, 40, 0.5, 9999)


def test_hosts_are_counted(storage: str, store: Store) -> None:
    store.put("run/run.json", json.dumps({"runId": "run", "phase": "Active", "attempt": 1, "worldSize": 3}).encode())
    for rank, attempt, host in ((0, 0, "h9"), (0, 1, "h0"), (1, 1, "h1"), (2, 1, "h1")):
        put(
            store,
            f"a{attempt}-r{rank}-aaaaaaa{rank}-00001",
            Record("phase", 1.0, "Active", rank=rank, attempt=attempt, payload={"host": host}),
        )
    row = find_run(storage, "run")
    assert (row.hosts, row.world_size, row.attempt) == (2, 3, 1)


def test_records_of_other_kinds_are_not_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(open_store(str(tmp_path)), "a0-r0-aaaaaaaa-00001", Record("metric", 1.0, "m", 1.0), Record("drop", 2.0, "d"))
    assert [record.name for record in read_records(str(tmp_path), "run")] == ["m", "d"]
    monkeypatch.setattr("mldiagnostics.runs.record_ends.decode", lambda _: pytest.fail("parsed"))
    assert list(read_records(str(tmp_path), "run", kinds={"phase"})) == []


def test_a_link_that_may_lead_out_of_the_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/records").symlink_to(tmp_path)
    with pytest.raises(Exception, match="is a link"):
        ranks(str(tmp_path / "run"))
