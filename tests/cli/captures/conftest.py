from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.servers.profiler_process import profiler_process

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.profiler_process import ProfilerProcess


@pytest.fixture(scope="module")
def server() -> Iterator[ProfilerProcess]:
    """A process with a real profiler server."""
    with profiler_process() as process:
        yield process
