"""Records of start-up and causes on a real volume: written soon, and never again after the files were deleted."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_api.resources import RUNS
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.status import cluster_records
from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
from mldiagnostics_operator.storage import Storage
from support.cluster.operating import DEADLINE_S

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

POLICY = Policy(default_storage=Location.parse("volume:///runs"))
JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "trainer", "uid": "u"}


def run_with_a_cause(name: str) -> Run:
    """Return a run whose first attempt ended for a cause."""
    body: dict[str, Any] = run_manifest(name, "ml", f"run-{name}", workload=JOB)
    body["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
    body["status"] = {"runId": f"run-{name}", "attempts": [{"attempt": 0, "cause": "Preemption"}]}
    return Run.of({"apiVersion": RUNS.api_version, "kind": RUNS.kind, **body})


async def test_a_deleted_run_gets_no_record_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_records, "PAUSE_S", 0.01)
    storage = Storage(tmp_path)
    records = ClusterRecords(storage, POLICY)
    waiting, late, kept, last = map(run_with_a_cause, ("waiting", "late", "kept", "last"))
    records.note(waiting)
    for run in (waiting, late):
        await records.forget(run)
    for run in (late, kept):
        records.note(run)
    writing = asyncio.create_task(records.run())
    try:
        await written(tmp_path, kept)
        records.note(waiting)
        records.note(last)
        await written(tmp_path, last)
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        storage.close()
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {kept.run_id, last.run_id}


async def written(volume: Path, run: Run) -> None:
    """Wait for the record of a run."""
    file = volume / "runs" / run.run_id / "reported/cluster.json"
    async with asyncio.timeout(DEADLINE_S):
        while not file.exists():  # noqa: ASYNC110 - polls a file
            await asyncio.sleep(0.01)
    assert json.loads(file.read_text())["runId"] == run.run_id
