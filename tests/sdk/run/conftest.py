"""Programs that use the SDK, for all tests of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.programs.processes import Programs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)
