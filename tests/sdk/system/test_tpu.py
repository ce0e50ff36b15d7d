"""TPUs through libtpu's monitoring library; a stand-in package replaces it, since it needs a TPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

READ = """
import json
from mldiagnostics.system.tpu import tpus
source = tpus()
print(json.dumps(source and [[reading.metric.value, reading.value] for reading in source.read()]))
"""
MONITORING = """
_DATA = {metrics!r}


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


def readings(folder: Path, metrics: dict[str, list[str]] | None, **environment: str) -> Any:
    if metrics is not None:
        package = folder / "libtpu/sdk"
        package.mkdir(parents=True)
        (folder / "libtpu/__init__.py").touch()
        (package / "__init__.py").write_text("from libtpu.sdk import tpumonitoring\n")
        (package / "tpumonitoring.py").write_text(MONITORING.format(metrics=metrics))
    done = subprocess.run(
        [sys.executable, "-c", READ],
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


METRICS = {
    "duty_cycle_pct": ["97.5", "12"],
    "tensorcore_util": ["50.25", "3"],
    "hbm_capacity_usage": ["250", "500"],
    "hbm_capacity_total": ["1000", "1000"],
}


def test_each_series_has_one_value_per_chip(tmp_path: Path) -> None:
    assert readings(tmp_path, METRICS) == [
        ["tpu_duty_cycle", [97.5, 12.0]],
        ["tpu_tensorcore_utilization", [50.25, 3.0]],
        ["hbm_utilization", [25.0, 50.0]],
    ]


def test_an_idle_or_older_libtpu_gives_no_series(tmp_path: Path) -> None:
    assert readings(tmp_path, {"duty_cycle_pct": [], "hbm_capacity_usage": ["1"]}) == []


def test_without_libtpu_or_with_mlrun_skip_libtpu_there_is_no_source(tmp_path: Path) -> None:
    assert readings(tmp_path, None) is None
    assert readings(tmp_path, METRICS, MLRUN_SKIP_LIBTPU="True") is None
