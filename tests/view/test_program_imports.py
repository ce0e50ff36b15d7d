"""Packages that a start of the view does not load."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["pydantic", "click", "grpc", "google.cloud.storage"])
def test_a_view_of_a_directory_does_not_load(package: str) -> None:
    program = f"import sys, mldiagnostics_view.program; print({package!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "False\n"
