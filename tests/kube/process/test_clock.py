from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from mldiagnostics_kube.process.clock import loop_time, utc_now

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


async def test_a_time_of_day_becomes_a_time_of_the_loops_clock() -> None:
    before = asyncio.get_running_loop().time()
    converted = loop_time(NOW + timedelta(seconds=90), lambda: NOW)
    assert before + 90 <= converted <= asyncio.get_running_loop().time() + 90


def test_the_real_clock_has_a_time_zone() -> None:
    assert utc_now().tzinfo is UTC
