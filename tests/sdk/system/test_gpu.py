"""GPUs through NVIDIA's Python bindings, over a stand-in for the driver's library (`nvml.c`)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

READ_TWICE = """
import json
from mldiagnostics.system.gpu import gpus
source = gpus()
for _ in range(2):
    readings = source.read() if source else []
print(json.dumps([[reading.metric.value, reading.value, reading.labels] for reading in readings]))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler to build the stand-in for the driver's library")
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).parent / "nvml.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "libnvidia-ml.so.1", source], check=True)
    return folder


def readings(folder: Path, **environment: str) -> Any:
    """Return the readings of a new process that loads the driver's library from `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", READ_TWICE],
        env={**os.environ, "LD_LIBRARY_PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return json.loads(done.stdout)


def test_each_series_has_one_value_per_device_and_nan_for_a_failed_one(driver: Path) -> None:
    series = {metric: (values, labels) for metric, values, labels in readings(driver)}
    nan = pytest.approx(float("nan"), nan_ok=True)
    gpu = {"accelerator_type": "gpu"}
    assert series == {
        "gpu_utilization": ([40.0, 41.0, nan], gpu),
        "vram_utilization": ([25.0, 50.0, nan], gpu),
        "gpu_duty_cycle": ([1.5, nan, nan], gpu),  # metric 1 of the device's own counters
        "gpu_tensorcore_utilization": ([5.5, nan, nan], gpu),  # metric 5
    }


def test_a_driver_without_devices_gives_no_series(driver: Path) -> None:
    assert readings(driver, NO_GPUS="1") == []


def test_a_host_without_a_driver_gives_no_series(tmp_path: Path) -> None:
    if shutil.which("nvidia-smi"):
        pytest.skip("this host has a driver")
    assert readings(tmp_path) == []
