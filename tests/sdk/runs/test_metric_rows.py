"""The metrics that a real run has recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mldiagnostics.runs import metrics
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import sys
from mldiagnostics import machinelearning_run, metric_types, metrics
with machinelearning_run("job", run_workload_id="w", log_system_metrics=False) as run:
    metrics.record("loss", 1.0, step=0)
    metrics.record("loss", 0.5, step=1, labels={"split": "eval"})
    metrics.record(metric_types.MetricType.STEP_TIME, 0.25)
    metrics.record("note", "not a metric")
    if run.origin.rank:
        metrics.record("per_device", [1, 2])
"""


def test_metrics_have_units_kinds_and_ranks(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    for rank in range(2):
        assert programs.run(PROGRAM, env={"NODE_RANK": str(rank), "NNODES": "2"}).code == 0
    rows = metrics(programs.the_run())
    assert [(row.name, row.unit, row.kind, row.ranks, row.labels, row.count) for row in rows] == [
        ("loss", "1", "number", (0, 1), ("split",), 4),
        ("per_device", "1", "per-device", (1,), (), 2),
        ("step_time", "s", "number", (0, 1), (), 2),
    ]
    assert all(row.first_t <= row.last_t for row in rows)
    assert [row.name for row in metrics(programs.the_run(), rank=0)] == ["loss", "step_time"]
    assert json.dumps([row.to_json() for row in rows])
