from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.resources import CONNECTIONS

CRD = Path("crds/mldiagnosticsconnections.diagon.gke.io.yaml")


def manifests(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mldiagnostics_api", "manifests", "--root", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_check_finds_missing_and_changed_files(tmp_path: Path) -> None:
    missing = manifests(tmp_path, "--check")
    assert missing.returncode == 1
    assert f"{CRD}: not up to date; run `make manifests`" in missing.stderr

    assert manifests(tmp_path).returncode == 0
    assert manifests(tmp_path, "--check").returncode == 0
    assert not manifests(tmp_path).stdout

    (tmp_path / CRD).write_text("edited by hand")
    assert manifests(tmp_path, "--check").returncode == 1


def test_the_written_file_is_the_definition(tmp_path: Path) -> None:
    manifests(tmp_path)
    assert yaml.safe_load((tmp_path / CRD).read_text()) == definition_of(CONNECTIONS)
