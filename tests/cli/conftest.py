from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from support.programs.command_line import CommandLine

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.store import Store


@pytest.fixture
def mldiag(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)


@pytest.fixture
def opener(tmp_path: Path, plain_path: Path) -> str:
    """A program for `BROWSER`, which a space would split: it adds the address to the file `opened` of `tmp_path`."""
    program = plain_path / "browser"
    program.write_text(f"#!/bin/sh\necho \"$1\" >> '{tmp_path}/opened'\n")
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The storage that the command line reads by default: below its directory."""
    return open_store(str(tmp_path / "mldiagnostics"))
