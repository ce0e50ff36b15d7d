"""Records of start-up and causes on a real volume: written soon, and never again after the files were deleted."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.resources import RUNS
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.status import cluster_records
from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
from mldiagnostics_operator.storage import Storage
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

NOW = datetime(2026, 11, 1, tzinfo=UTC)
POLICY = Policy(default_storage=Location.parse("volume:///runs"))
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": "u"}


def run_with_a_cause(name: str, **attempt: str) -> Run:
    """Return a run whose first attempt ended for a cause."""
    body: dict[str, Any] = run_manifest(name, "ml", f"run-{name}", workload=JOB)
    body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    body["status"] = {"runId": f"run-{name}", "attempts": [{"attempt": 0, "cause": "Preemption", **attempt}]}
    return Run.of({"apiVersion": RUNS.api_version, "kind": RUNS.kind, **body})


@pytest.fixture
async def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ClusterRecords]:
    """Records on the volume `tmp_path`, written as long as the test runs once it calls `writing`."""
    monkeypatch.setattr(cluster_records, "PAUSE_S", 0.01)
    storage = Storage(tmp_path)
    yield ClusterRecords(storage, POLICY, lambda: NOW)
    storage.close()


@asynccontextmanager
async def writing(records: ClusterRecords) -> AsyncIterator[None]:
    """Write records while the block runs."""
    task = asyncio.create_task(records.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_deleted_run_gets_no_record_any_more(tmp_path: Path, records: ClusterRecords) -> None:
    waiting, late, kept, last = map(run_with_a_cause, ("waiting", "late", "kept", "last"))
    records.note(waiting)
    for run in (waiting, late):
        await records.forget(run)
    for run in (late, kept):
        records.note(run)
    async with writing(records):
        await written(tmp_path, kept)
        records.note(waiting)
        records.note(last)
        await written(tmp_path, last)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {kept.run_id, last.run_id}


async def test_a_file_that_cannot_be_written_again_does_not_stop_the_records(
    tmp_path: Path, records: ClusterRecords
) -> None:
    hostile, other = run_with_a_cause("hostile"), run_with_a_cause("other")
    file = file_of(tmp_path, hostile)
    file.parent.mkdir(parents=True)
    nested = "[" * 300 + "]" * 300
    file.write_text(f'{{"v": 1, "runId": "{hostile.run_id}", "attempts": [], "x": {nested}}}')
    records.note(hostile)
    records.note(other)
    async with writing(records):
        await written(tmp_path, other)
    assert set(json.loads(file.read_text())) == {"v", "runId", "namespace", "attempts"}


@pytest.mark.parametrize("attempts", [[{}], [1], None, 5, [{"attempt": "x"}], [{"attempt": 0, "started": []}]])
async def test_a_file_of_a_user_does_not_stop_the_records(
    tmp_path: Path, records: ClusterRecords, attempts: object
) -> None:
    hostile, other = run_with_a_cause("hostile"), run_with_a_cause("other")
    file = file_of(tmp_path, hostile)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"v": 1, "runId": hostile.run_id, "attempts": attempts}))
    records.note(hostile)
    records.note(other)
    async with writing(records):
        await written(tmp_path, other)
    assert [each["cause"] for each in json.loads(file.read_text())["attempts"]] == ["preemption"]


async def test_a_write_that_fails_is_repeated_and_does_not_delay_others(
    tmp_path: Path, records: ClusterRecords, caplog: pytest.LogCaptureFixture
) -> None:
    failing, other = run_with_a_cause("failing"), run_with_a_cause("other")
    in_the_way = file_of(tmp_path, failing).parent
    in_the_way.parent.mkdir(parents=True)
    in_the_way.write_text("a file, not a directory")
    records.note(failing)
    async with writing(records):
        async with asyncio.timeout(DEADLINE_S):
            while "run ml/failing are not in its files" not in caplog.text:  # noqa: ASYNC110 - polls a log
                await asyncio.sleep(0.01)
        records.note(other)
        await written(tmp_path, other)
        in_the_way.unlink()
        await written(tmp_path, failing)
    assert caplog.text.count("trying again") == 1


async def test_a_new_leader_writes_what_one_before_may_have_left(tmp_path: Path, records: ClusterRecords) -> None:
    recent = run_with_a_cause("recent", endTime=f"{NOW - timedelta(minutes=59):%FT%TZ}")
    old = run_with_a_cause("old", endTime=f"{NOW - timedelta(minutes=61):%FT%TZ}")
    for run in (old, recent, run_with_a_cause("timeless")):
        records.note_first(run)
    async with writing(records):
        await written(tmp_path, recent)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == [recent.run_id]


def file_of(volume: Path, run: Run) -> Path:
    return volume / "runs" / run.run_id / "reported/cluster.json"


async def written(volume: Path, run: Run) -> None:
    """Wait for the record of a run."""
    file = file_of(volume, run)
    async with asyncio.timeout(DEADLINE_S):
        while not file.is_file():  # noqa: ASYNC110 - polls a file
            await asyncio.sleep(0.01)
    assert json.loads(file.read_text())["runId"] == run.run_id
