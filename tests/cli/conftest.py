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
def store(tmp_path: Path) -> Store:
    """The storage that the command line reads by default: below its directory."""
    return open_store(str(tmp_path / "mldiagnostics"))
