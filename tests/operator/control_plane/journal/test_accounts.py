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


async def test_a_run_whose_account_fails_for_any_reason_delays_no_other_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table, other = ReportTable(), RunKey("other", "b" * 64)
    located = {KEY: asyncio.Event(), other: asyncio.Event()}

    def location(key: RunKey, _owner: str) -> Location:
        located[key].set()
        if key == KEY:
            raise RuntimeError("broken")
        return Location.parse("volume:///absent")

    for key in (KEY, other):
        table.apply_peer(key, alias="", name="r", phase=None, storage="", received=1.0)
    accounts = Accounts(table, location, tmp_path)
    work = asyncio.create_task(accounts.run())
    async with asyncio.timeout(DEADLINE_S):
        for key in (KEY, other):
            accounts.note(key)
            await located[key].wait()
    work.cancel()
    await asyncio.wait({work})
    assert work.cancelled()
    assert "broken" in caplog.text
