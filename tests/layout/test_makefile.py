"""`make` names the remedy where Python is another one, or incomplete."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(folder: Path, python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make in an empty checkout, with a script as Python."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "python").write_text(f"#!/bin/sh\n{python}\n")
    (folder / "python").chmod(0o755)
    command = ["make", f"PYTHON={folder / 'python'}", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("python", "message"),
    [
        ('[ "$1" = --version ] && { echo Python 3.15.0; exit; }; exit 1', r"not Python 3.11 to 3.14 \(Python 3.15.0\)"),
        (
            f'case "$*" in *ensurepip*) exit 1;; esac; exec {sys.executable} "$@"',
            r"has no module ensurepip; install python3-venv",
        ),
    ],
)
def test_a_python_that_cannot_be_used_gives_the_remedy(tmp_path: Path, python: str, message: str) -> None:
    done = make(tmp_path, python, ".tools/uv/bin/uv")
    assert done.returncode
    assert re.search(message, done.stdout), done


def test_recipes_do_not_depend_on_shell_flags() -> None:
    """make 3.81 of macOS has none: the exit status of a pipe is that of its last command."""
    recipes = re.sub(r"\\\n", "", (ROOT / "Makefile").read_text())
    pipes = [line for line in recipes.splitlines() if line.startswith("\t") and re.search(r"(?<!\|)\|(?!\|)", line)]
    assert all("| diff " in line or "hatchling" in line for line in pipes)
    assert ".SHELLFLAGS" not in re.sub(r"#.*", "", recipes)
