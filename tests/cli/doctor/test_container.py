"""The program that the doctor runs in a container, and the verdicts about its report."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from mldiagnostics import __version__
from mldiagnostics_cli.doctor import container_probe
from mldiagnostics_cli.doctor.container import sdk_findings
from mldiagnostics_cli.doctor.container_probe import python_of_program
from mldiagnostics_cli.doctor.finding import State

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = inspect.getsource(container_probe)


def probed(**env: str) -> dict[str, Any]:
    """Return the report of a process that gets only the source, as a container does."""
    without_cli = [sys.executable, "-c", f"import sys; sys.modules['mldiagnostics_cli'] = None\nexec({SOURCE!r})"]
    ended = subprocess.run(without_cli, env=env, capture_output=True, text=True, check=True, timeout=60)
    report: dict[str, Any] = json.loads(ended.stdout)
    return report


def verdicts(report: dict[str, Any]) -> list[tuple[str, State]]:
    return [(finding.part, finding.state) for finding in sdk_findings("train", report)]


def test_a_container_whose_sinks_and_storage_work_is_fine(tmp_path: Path) -> None:
    report = probed(MLDIAG_STORAGE=str(tmp_path / "runs"), MLDIAG_SINKS="jsonl:, stdout:")
    assert report["sdk"] == __version__
    assert verdicts(report) == [("sdk of the pod", State.FINE), ("storage of the pod", State.FINE)]
    assert list((tmp_path / "runs").iterdir()) == []


def test_faults_of_sinks_and_storage_have_their_remedies(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    report = probed(MLDIAG_STORAGE=str(tmp_path / "file/runs"), MLDIAG_SINKS="nosuch:")
    assert verdicts(report) == [("sdk of the pod", State.BROKEN), ("storage of the pod", State.BROKEN)]
    assert all(finding.remedy for finding in sdk_findings("train", report))
    missing = "otlp://host:4317 needs the extra 'otlp': pip install './sdk[otlp]' in a checkout"
    [finding, storage] = sdk_findings("train", {"sdk": "0.1.0", "problems": [missing], "storage": ""})
    assert (finding.message, finding.remedy) == (
        "otlp://host:4317 needs the extra 'otlp'",
        "pip install './sdk[otlp]' in a checkout",
    )
    assert storage.state is State.UNKNOWN


def test_a_container_without_the_sdk_is_unknown() -> None:
    [finding] = sdk_findings(
        "train", {"python": "/usr/bin/python3", "sdk": "", "problems": ["No module named 'mldiagnostics'"]}
    )
    assert finding.state is State.UNKNOWN
    assert "/usr/bin/python3 has no SDK of mldiagnostics" in finding.message


def test_the_python_of_the_oldest_program_is_used(tmp_path: Path) -> None:
    processes = {
        "1": "/bin/sh",
        "7": "/none/bin/python3",
        "5000012": sys.executable,
        "5000103": "python3",
        "self": "python3",
    }
    for number, command in processes.items():
        (tmp_path / number).mkdir()
        if number != "5000103":  # it has ended
            (tmp_path / number / "cmdline").write_bytes(f"{command}\0train.py\0".encode())
    assert python_of_program(str(tmp_path)) == sys.executable
    (tmp_path / "5000012/cmdline").write_bytes(b"")
    assert python_of_program(str(tmp_path)) is None
