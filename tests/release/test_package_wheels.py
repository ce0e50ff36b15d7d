"""The command line as a tool: installed from wheels into an environment of its own, and used far from the checkout."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from typing import TYPE_CHECKING
from zipfile import ZipFile

import pytest
from cluster import ambient
from cluster.paths import REPOSITORY
from mldiagnostics.store import open_store
from release.version import current
from support.run_files import put_run

if TYPE_CHECKING:
    from pathlib import Path

UV = REPOSITORY / ".tools/uv/bin/uv"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheels as `make wheels` does, install the tool, and return the folder of its programs."""
    folder = tmp_path_factory.mktemp("tool")
    wheels, scripts = folder / "wheels", folder / "bin"
    pinned = ["--build-constraints", REPOSITORY / "cli/build.lock", "--require-hashes"]
    run(REPOSITORY, UV, "build", "-q", "--wheel", "--all-packages", *pinned, "-o", wheels)
    [view] = wheels.glob("mldiagnostics_view-*.whl")
    assert "mldiagnostics_view/assets/index.html" in ZipFile(view).namelist()
    requirements = [
        "--python",
        sys.executable,
        "--find-links",
        wheels,
        "--constraints",
        REPOSITORY / "requirements.lock",
    ]
    run(
        folder,
        *(UV, "tool", "install", "-q", *requirements, "mldiagnostics-cli"),
        UV_TOOL_DIR=str(folder / "tools"),
        UV_TOOL_BIN_DIR=str(scripts),
    )
    return scripts


def test_the_tool_needs_nothing_but_its_wheels(scripts: Path, tmp_path: Path) -> None:
    mldiag = scripts / "mldiag"
    assert run(tmp_path, mldiag, "--version") == f"mldiag {current()}\n"
    assert run(tmp_path, scripts / "kubectl-mldiag", "runs", "--help").startswith("Usage: kubectl mldiag runs ")
    assert f"mldiagnostics-cli {current()}" in run(tmp_path, mldiag, "doctor", HOME=str(tmp_path))
    put_run(open_store(str(tmp_path / "training")), "4f6c")
    assert run(tmp_path, mldiag, "runs", "list", "--storage", "training", "-o", "name") == "4f6c\n"


def test_the_tool_has_the_page_of_the_view(scripts: Path, tmp_path: Path) -> None:
    assert run(tmp_path, scripts / "mldiag", "view", "--help").startswith("Usage: mldiag view ")
    command = [scripts / "mldiag", "view", "--no-open", "--port", "0", tmp_path]
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True) as view:
        try:
            assert view.stdout
            url = view.stdout.readline().split()[2]
            with urllib.request.urlopen(url, timeout=60) as response:
                assert response.read().startswith(b"<!doctype html>")
        finally:
            view.terminate()


def environment(**variables: str) -> dict[str, str]:
    """Return the variables of the user, whose cache uv needs, without those of clusters and Python environments."""
    kept = {
        name: value
        for name, value in ambient.environment().items()
        if not name.startswith(("KUBE", "VIRTUAL_ENV", "PYTHON"))
    }
    return kept | variables


def run(folder: Path, *command: str | Path, **variables: str) -> str:
    """Run a command in a folder and return its output."""
    done = subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
