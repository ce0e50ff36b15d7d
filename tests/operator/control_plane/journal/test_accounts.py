"""Accounts of goodput of journals: the task that computes them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane.journal.accounts import Accounts
from mldiagnostics_operator.control_plane.memory.table import ReportTable

if TYPE_CHECKING:
    from pathlib import Path

KEY = RunKey("ml", "a" * 64)
DEADLINE_S = 60


@pytest.mark.parametrize("turns", range(6))
async def test_the_work_on_accounts_ends_when_it_is_cancelled_while_a_run_is_noted(tmp_path: Path, turns: int) -> None:
    accounts = Accounts(ReportTable(), lambda _key, _owner: Location.parse("volume:///runs"), tmp_path, interval_s=3600)
    work = asyncio.create_task(accounts.run())
    for _ in range(10):  # until it waits for work
        await asyncio.sleep(0)
    accounts.note(KEY)
    for _ in range(turns):
        await asyncio.sleep(0)
    work.cancel()
    await asyncio.wait({work}, timeout=DEADLINE_S)
    assert work.cancelled()
