"""The command line as a tool: installed from the wheels of this checkout into an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING
from zipfile import ZipFile

from cluster.paths import REPOSITORY
from release.version import current

if TYPE_CHECKING:
    from pathlib import Path

UV = REPOSITORY / ".tools/uv/bin/uv"


def test_the_wheels_install_as_a_tool_that_needs_nothing_else(tmp_path: Path) -> None:
    wheels, scripts = tmp_path / "wheels", tmp_path / "bin"
    pinned = ["--build-constraints", REPOSITORY / "cli/build.lock", "--require-hashes"]
    run(UV, "build", "-q", "--wheel", "--all-packages", *pinned, "-o", wheels)
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
        *(UV, "tool", "install", "-q", *requirements, "mldiagnostics-cli"),
        UV_TOOL_DIR=str(tmp_path / "tools"),
        UV_TOOL_BIN_DIR=str(scripts),
    )
    assert run(scripts / "mldiag", "--version") == f"mldiag {current()}\n"
    assert run(scripts / "kubectl-mldiag", "runs", "--help").startswith("Usage: kubectl mldiag runs ")
    assert f"mldiagnostics-cli {current()}" in run(scripts / "mldiag", "doctor", HOME=str(tmp_path))


def run(*command: str | Path, **variables: str) -> str:
    """Run a command in the repository and return its output."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KUBE", "VIRTUAL_ENV", "PYTHON"))}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=kept | variables, capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
