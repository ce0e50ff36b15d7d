"""The charge of runs and processes, compared with the memory that they take."""

from __future__ import annotations

import gc
import tracemalloc
from typing import Any

import pytest
from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from support.cluster.reports import apply, body_of

MANY = 200
STEPS = [Event(1_790_000_000_000_000 + at, EventCode.STEP_START, at) for at in range(20)]
TYPICAL = {
    "worldSize": 2,
    "host": {"name": "trainer-0-0"},
    "profiler": {"ports": [9999], "server": "jax", "version": "0.10.2", "tensorflow": False},
    "progress": {"step": 10, "stepTimeSeconds": 1.5, "changed": 1.5},
}
LEADING = TYPICAL | {
    "run": {"name": "a run"},
    "metrics": {f"metric/{number}": 0.5 + number for number in range(10)},
    "configs": {"user": {f"option_{number}": number for number in range(20)}},
    "events": {"items": packing.pack(STEPS)},
}


def report(table: ReportTable, run: int, process: int, changes: dict[str, Any]) -> None:
    document = {"v": 1, "incarnation": f"{process:08x}", "sequence": 1, "sent": 1.5, "rank": process} | changes
    key = RunKey("team", f"{run:064x}")
    apply(table, key, body_of(document), Sender("team", "default", f"pod-{run}-{process}", f"uid-{process}"), 1.5)
    table.view(key)


@pytest.mark.parametrize("changes", [{}, TYPICAL, LEADING], ids=["least", "typical", "leading"])
@pytest.mark.parametrize("is_one_run", [False, True], ids=["runs", "processes"])
def test_the_charge_is_not_less_than_the_memory(changes: dict[str, Any], is_one_run: bool) -> None:
    table = ReportTable()
    report(table, 0, 0, changes)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0], table.budget.state.used + table.budget.events.used
        for number in range(1, MANY + 1):
            report(table, 0 if is_one_run else number, number, changes)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before[0]
    finally:
        tracemalloc.stop()
    charged = table.budget.state.used + table.budget.events.used - before[1]
    assert taken <= charged <= 4 * taken
