from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from support.definitions import connections
from support.operating import complete, verdict
from support.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from support.operating import Namespace, Object, Operating

pytestmark = pytest.mark.apiserver


async def left_behind(ml: Namespace, holder: str, **changes: object) -> None:
    """Give the capture the status that a process of that name left."""
    now = datetime.now(UTC)
    status: Object = {
        "phase": "Running",
        "holder": holder,
        "attempt": 1,
        "sessionId": "s",
        "startTime": now.isoformat(),
        "plannedStartTime": now.isoformat(),
        "deadline": (now + timedelta(hours=1)).isoformat(),
    }
    await ml.cluster.patch(f"{connections(ml.name)}/capture/status", {"status": status | changes})


@pytest.fixture
async def prepared(ml: Namespace) -> Namespace:
    """A namespace in which the live pod `operator-a` holds a capture of the pod `a`."""
    pod = await ml.pod("operator-a")
    await ml.capture(podName="a", durationMilliseconds=10)
    await left_behind(ml, f"operator-a/{pod['metadata']['uid']}/1795000000-x")
    return ml


async def test_a_live_holders_capture_is_left_alone_until_its_pod_is_gone(
    prepared: Namespace, operator: Operating
) -> None:
    async with FakeProfiler().serving(prepared.ip) as server:
        await prepared.pod("a", server.port)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.began.wait(), 1)
        assert not complete(await prepared.status())
        await prepared.remove_pod("operator-a")
        status = await prepared.finished()
    assert verdict(status) == ("Succeeded", "Succeeded")
    assert status["attempt"] == 2
    assert operator.versions["capture"]


async def test_after_its_deadline_even_a_live_holder_is_relieved(prepared: Namespace, operator: Operating) -> None:
    await left_behind(prepared, (await prepared.status())["holder"], attempt=2, deadline="2026-01-01T00:00:00Z")
    await prepared.pod("a", 1)
    assert verdict(await prepared.finished()) == ("Failed", "Interrupted")
    assert operator.captures


async def test_a_capture_that_was_cancelled_meanwhile_is_not_made_again(
    prepared: Namespace, operator: Operating
) -> None:
    async with FakeProfiler().serving(prepared.ip) as server:
        await prepared.pod("a", server.port)
        await prepared.change("capture", cancel=True)
        await prepared.remove_pod("operator-a")
        status = await prepared.finished()
    assert verdict(status) == ("Failed", "Cancelled")
    assert status["results"][0]["state"] == "Cancelled"
    assert server.requests == []
    assert operator.captures
