"""TPUs through libtpu's monitoring, played here by a package of its name and shape: none can run without a TPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

READ = """
import json
from mldiagnostics.system.tpu import tpus
found = tpus()
print(json.dumps(found and [[reading.metric.value, reading.value] for reading in found.read()]))
"""
MONITORING = """
_DATA = {answers!r}


class _Metric:
    def __init__(self, data):
        self._data = data

    def data(self):
        return self._data


def get_metric(name):
    if name not in _DATA:
        raise RuntimeError(f"Unsupported metric: {{name}}")
    return _Metric(_DATA[name])
"""


def readings(folder: Path, answers: dict[str, list[str]] | None, **environment: str) -> Any:
    if answers is not None:
        package = folder / "libtpu/sdk"
        package.mkdir(parents=True)
        (folder / "libtpu/__init__.py").touch()
        (package / "__init__.py").write_text("from libtpu.sdk import tpumonitoring\n")
        (package / "tpumonitoring.py").write_text(MONITORING.format(answers=answers))
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


ANSWERS = {
    "duty_cycle_pct": ["97.5", "12"],
    "tensorcore_util": ["50.25", "3"],
    "hbm_capacity_usage": ["250", "500"],
    "hbm_capacity_total": ["1000", "1000"],
}


def test_there_is_one_number_for_each_chip(tmp_path: Path) -> None:
    assert readings(tmp_path, ANSWERS) == [
        ["tpu_duty_cycle", [97.5, 12.0]],
        ["tpu_tensorcore_utilization", [50.25, 3.0]],
        ["hbm_utilization", [25.0, 50.0]],
    ]


def test_what_an_idle_or_older_libtpu_does_not_tell_is_no_series(tmp_path: Path) -> None:
    assert readings(tmp_path, {"duty_cycle_pct": [], "hbm_capacity_usage": ["1"]}) == []


def test_without_libtpu_or_where_it_is_to_be_left_alone_there_is_no_source(tmp_path: Path) -> None:
    assert readings(tmp_path, None) is None
    assert readings(tmp_path, ANSWERS, MLRUN_SKIP_LIBTPU="True") is None
