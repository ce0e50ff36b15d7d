"""Tracks of a run with parts that have no place in a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.records import Record
from mldiagnostics.runs import list_runs
from mldiagnostics.runs.run_goodput import goodput_log
from mldiagnostics.store import open_store
from mldiagnostics_cli.trace.events import TraceEvents
from mldiagnostics_cli.trace.run_tracks import run_events
from support.run_files import put_records, put_run

if TYPE_CHECKING:
    from pathlib import Path

RUN = "4f6c"


def test_parts_of_a_run_that_cannot_be_shown_do_not_stop_the_rest(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    put_run(store, RUN)
    before, after = Record("event", -1.0, "before 1970"), Record("event", 5.0, "after")
    put_records(store, RUN, "a0-r0-aaaaaaaa-00001", before, after)
    deep = '{"targets":' + "[" * 100_000
    store.put(f"{RUN}/plugins/profile/slow/capture.json", deep.encode())
    store.put(f"{RUN}/plugins/profile/slow/trainer-0.xplane.pb", b"trace")
    [row] = list_runs(str(tmp_path))
    texts = list(run_events(TraceEvents(), row, now=10**7, log=goodput_log(row)))
    names = [json.loads(line.removesuffix(","))["name"] for text in texts for line in text.splitlines()]
    assert "after" in names
    assert "before 1970" not in names
    assert "slow stored" in names


def test_the_goodput_of_a_killed_run_ends_where_it_stopped(tmp_path: Path) -> None:
    started, stopped, days_later = 1795341600, 1795341660, 1795341600 + 3 * 86_400
    steps = [{"job_name": "trainer", "step_count": n, "step_start_time": float(started + n)} for n in range(31)]
    events = [{"job_name": "trainer", "job_start_time": float(started)}, *steps]  # killed: no end of the job
    store = open_store(str(tmp_path))
    put_run(store, RUN, phase="Failed", reason="ExitCode", created=float(started), ended=float(stopped))
    lines = "".join(f"{json.dumps(event)}\n" for event in events).encode()
    store.put(f"{RUN}/records/a0-r0-00000000-00001.jsonl", lines)
    [row] = list_runs(str(tmp_path))
    trace = TraceEvents()
    assert list(run_events(trace, row, now=days_later * 10**6, log=goodput_log(row)))
    assert (trace.first, trace.last) == (started * 10**6, stopped * 10**6)
