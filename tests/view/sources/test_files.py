"""Runs of a bucket, with few requests."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs import ranks
from mldiagnostics.store import open_store
from mldiagnostics_view.sources.files import FileSource
from support.run_files import put_records, put_run
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    import pytest


async def test_the_records_of_a_run_are_read_once_for_all_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    with running_emulator() as emulator, faulty_proxy(emulator) as bucket:
        emulator.make_bucket("bucket")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", bucket.url)
        store = open_store("gs://bucket/runs")
        put_run(store, "first")
        for rank in (0, 1):
            beat = Record("heartbeat", 5.0, "alive", step=rank, rank=rank, attempt=0, payload={"host": f"host-{rank}"})
            put_records(store, "first", f"a0-r{rank}-0000000{rank}-00001", beat)
        bucket.requests.clear()
        known = await asyncio.to_thread(ranks, "gs://bucket/runs/first")
        once = [request for request in bucket.requests if ".jsonl" in request]
        bucket.requests.clear()
        assert (await FileSource("gs://bucket/runs").detail("first")).hosts == known
        assert once
        assert sorted(request for request in bucket.requests if ".jsonl" in request) == sorted(once)
