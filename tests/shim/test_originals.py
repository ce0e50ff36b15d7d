"""The warning beside Google's own distribution, whose metadata is simulated."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ADVICE = "pip uninstall google-cloud-mldiagnostics, then pip install"


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A folder for the import path with the metadata of the original distribution."""
    metadata = tmp_path / "google_cloud_mldiagnostics-1.0.10.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: google-cloud-mldiagnostics\nVersion: 1.0.10\n")
    return tmp_path


def python(*arguments: str, path: Sequence[Path] = ()) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path))}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_alone_it_serves_all_names() -> None:
    result = python("-m", "mldiagnostics_shim")
    served = [f"{name}: served by mldiagnostics" for name in ("google_cloud_mldiagnostics", "ml_goodput_measurement")]
    assert (result.returncode, result.stdout.splitlines()) == (0, served), result.stderr
    assert python("-c", "import google_cloud_mldiagnostics, ml_goodput_measurement").stderr == ""


def test_beside_the_goodput_library_it_names_the_package_to_uninstall(tmp_path: Path) -> None:
    metadata = tmp_path / "ml_goodput_measurement-0.2.3.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: ml-goodput-measurement\nVersion: 0.2.3\n")
    imported = python("-c", "from ml_goodput_measurement import goodput; print(goodput.__name__)", path=[tmp_path])
    assert imported.stdout == "mldiagnostics.goodput\n"
    assert "pip uninstall ml-goodput-measurement, then pip install" in imported.stderr
    assert python("-m", "mldiagnostics_shim", path=[tmp_path]).returncode == 1


def test_beside_the_original_it_works_and_names_the_package_to_uninstall(original: Path) -> None:
    result = python("-m", "mldiagnostics_shim", path=[original])
    assert result.returncode == 1
    assert "google-cloud-mldiagnostics 1.0.10 is installed too" in result.stdout
    assert ADVICE in result.stdout
    imported = python("-c", "from google_cloud_mldiagnostics import metrics; print(metrics.__name__)", path=[original])
    assert imported.stdout == "mldiagnostics.metrics\n"
    assert ADVICE in imported.stderr


def test_a_replaced_folder_is_reported(original: Path) -> None:
    folder = original / "google_cloud_mldiagnostics"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise SystemExit('the original was imported')\n")
    result = python("-m", "mldiagnostics_shim", path=[original])
    assert result.returncode == 1
    assert "google_cloud_mldiagnostics: not served by mldiagnostics: google-cloud-mldiagnostics 1.0.10" in result.stdout
    assert ADVICE in result.stdout
