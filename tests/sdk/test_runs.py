"""Runs read back, from a directory and from a bucket alike."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from mldiagnostics import diagnostics
from mldiagnostics.errors import ConfigurationError, StoreNotFound
from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs import find_run, list_runs, ranks_of, read_records
from mldiagnostics.store import open_store
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store


@pytest.fixture(params=["local", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "runs")
    return f"gs://{request.getfixturevalue('gcs_bucket')}/some/runs"


@pytest.fixture
def store(storage: str) -> Store:
    return open_store(storage, timeout_s=30)


def test_an_empty_place_has_no_runs(storage: str) -> None:
    assert list_runs(storage) == []


def test_a_missing_bucket_is_an_error(gcs_bucket: str) -> None:
    with pytest.raises(StoreNotFound):
        list_runs(f"gs://{gcs_bucket}-not/there")


def test_runs_are_listed_newest_first(storage: str, store: Store) -> None:
    for number in range(40):
        put_run(store, f"run-{number}", created=float(number), phase="Completed")
    store.put("goodput/logger/job/x.jsonl", b"")
    rows = list_runs(storage)
    assert [row.run_id for row in rows] == [f"run-{number}" for number in reversed(range(40))]
    assert rows[0].directory == store.url("run-39")


@pytest.mark.parametrize("broken", [b"{", b"[]", b"\xff", b""])
def test_a_run_that_cannot_be_read_is_left_out(storage: str, store: Store, broken: bytes) -> None:
    put_run(store, "good")
    store.put("bad/run.json", broken)
    assert [row.run_id for row in list_runs(storage)] == ["good"]
    assert broken == b"[]" or diagnostics.counts()["unreadable-run"]


def test_a_run_is_found_by_the_beginning_of_its_id(storage: str, store: Store) -> None:
    for run in ("abc1", "abc2", "abd"):
        put_run(store, run)
    assert find_run(storage, "abd").run_id == find_run(storage, "abd"[:3]).run_id == "abd"
    assert find_run(storage, "abc1").name == "name of abc1"
    with pytest.raises(ConfigurationError, match="2 runs"):
        find_run(storage, "abc")
    with pytest.raises(ConfigurationError, match="0 runs"):
        find_run(storage, "x")


def test_records_are_read_in_order_and_torn_or_foreign_lines_passed_over(storage: str, store: Store) -> None:
    first = [Record("metric", float(t), "loss", value=float(t)) for t in range(3)]
    put_records(store, "r", "a0-r0-aaaaaaaa-00001", *first, torn=b'{"v":1,"kind":"metric","t":9')
    put_records(
        store, "r", "a0-r0-aaaaaaaa-00002", Record("event", 3.0, "said", payload={"a": 1}), torn=b"nonsense\n{}\n"
    )
    store.put("r/records/notes.txt", b"not ours\n")
    assert [record.t for record in read_records(storage, "r")] == [0.0, 1.0, 2.0, 3.0]
    assert [record.name for record in read_records(storage, "r", kinds={"event"})] == ["said"]
    assert list(read_records(storage, "another")) == []


def test_the_failure_of_a_worker_is_the_runs(storage: str, store: Store) -> None:
    put_run(store, "r", phase="Active", worldSize=2)
    put_records(store, "r", "a0-r0-aaaaaaaa-00001", Record("phase", 1.0, "Active", payload={"host": "h0"}))
    failed = Record("phase", 2.0, "Failed", rank=1, payload={"host": "h1", "reason": "ExitCode", "message": "exit 3"})
    put_records(store, "r", "a0-r1-bbbbbbbb-00001", failed)
    assert [rank.phase for rank in ranks_of(storage, "r")] == ["Active", "Failed"]
    row = find_run(storage, "r")
    assert (row.phase, row.reason, row.message) == ("Failed", "WorkerExitCode", "rank 1 on h1: exit 3")


def test_the_command_shows_runs(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put_run(store, "r" * 64, phase="Active", heartbeat={"t": 1.0, "intervalSeconds": 10})
    put_records(store, "r" * 64, "a0-r0-aaaaaaaa-00001", Record("phase", 1.0, "Active", payload={"host": "h0"}))

    def shown(*arguments: str) -> str:
        command = [sys.executable, "-m", "mldiagnostics.runs", str(tmp_path), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    assert "Failed (Lost)" in shown()
    assert "rank 0 on h0: Failed (Lost)  step -" in shown("rr")


def test_the_command_says_what_is_wrong_in_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mldiagnostics.runs", str(tmp_path), "nobody"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (1, "", 1), ended.stderr
    assert "nobody" in ended.stderr


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mldiagnostics.runs", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    ended = command(str(tmp_path / "nope"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "nope: no such directory; pass the root of the runs" in ended.stderr


def test_a_root_without_runs_says_so(tmp_path: Path) -> None:
    ended = command(str(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "")
    assert f"{tmp_path}: no runs yet" in ended.stderr


def test_the_directory_of_a_run_is_not_a_root(tmp_path: Path) -> None:
    put_run(open_store(str(tmp_path)), "abc")
    ended = command(str(tmp_path / "abc"))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert (
        f"this is the directory of one run; write python -m mldiagnostics.runs {shlex.quote(str(tmp_path))} abc"
        in ended.stderr
    )
