"""Descriptions of software, without importing it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from mldiagnostics.configs import gather
from mldiagnostics.configs.software import MAX_ARGUMENTS, installed_versions

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import json, sys
from mldiagnostics.configs.software import software
print(json.dumps(software("JAX")))
assert "jax" not in sys.modules
"""


def test_versions_are_those_that_are_installed() -> None:
    software = gather("JAX", {})["softwareConfigs"]
    assert software["framework"] == "JAX"
    assert software["framework_version"] == software["jax_version"] == version("jax")
    assert software["python_version"] == sys.version.split()[0]
    assert "torch_version" not in software
    assert installed_versions()["mldiagnostics"] == version("mldiagnostics")


def test_complete_sections_are_not_gathered_again() -> None:
    first = gather("JAX", {})
    assert set(first) == {"softwareConfigs", "hardwareConfigs"}
    assert gather("JAX", first) == {}


def test_a_missing_framework_does_not_fail() -> None:
    assert gather("COBOL", {})["softwareConfigs"]["framework_version"] == "n/a"


def test_the_arguments_of_the_program_are_shown_without_secrets(tmp_path: Path) -> None:
    def recorded(*arguments: str) -> dict[str, str]:
        program = tmp_path / "train.py"
        program.write_text(PROGRAM)
        command = [sys.executable, str(program), *arguments]
        result = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd="/").stdout
        return {name: value for name, value in json.loads(result).items() if name in {"command", "arguments"}}

    assert recorded() == {"command": "train.py"}
    shown = recorded("--name", "a b", "--hf-token", "hush", "lr=0.1", "\udc80")
    assert shown == {"command": "train.py", "arguments": "--name 'a b' --hf-token '<secret>' lr=0.1 '?'"}
    long = recorded(*map(str, range(1000)))["arguments"]
    assert long.startswith("0 1 2 3")
    assert (len(long), long[-4:]) == (MAX_ARGUMENTS, " ...")


def test_the_revision_is_that_of_the_programs_source(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()

    def description() -> str:
        command = [sys.executable, str(tmp_path / "train.py")]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd="/").stdout

    program = tmp_path / "train.py"
    program.write_text(PROGRAM)
    assert "git_revision" not in description()
    git("init", "-q")
    git("add", "train.py")
    git("commit", "-q", "-m", "x")
    revision = git("rev-parse", "HEAD")
    assert f'"git_revision": "{revision}"' in description()
    git("pack-refs", "--all")
    assert f'"git_revision": "{revision}"' in description()
    git("checkout", "-q", "--detach")
    assert f'"git_revision": "{revision}"' in description()
    git("worktree", "add", "-q", "-b", "other", "tree")
    command = [sys.executable, str(tmp_path / "tree/train.py")]
    assert revision in subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
