"""Work that fails starts again; a cancellation ends it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from mldiagnostics_operator import supervision
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    import pytest


async def test_work_that_fails_or_ends_starts_again_until_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "RESTART_S", 0)
    starts, failures, running = 0, list[str](), asyncio.Event()

    async def work() -> None:
        nonlocal starts
        starts += 1
        if starts == 1:
            raise OSError("the port is in use")
        if starts == 2:
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(0)).cancel()
                raise ValueError("of a task")
        if starts == 3:
            return
        running.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(keep_running("runs", work, failed=failures.append))
    await asyncio.wait_for(running.wait(), 60)
    assert (starts, failures) == (4, ["runs", "runs"])
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
