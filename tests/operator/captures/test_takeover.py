from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.v1alpha1 import ObjectMeta
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures.takeover import until_abandoned
from support.cluster.definitions import connections
from support.cluster.operating import complete, verdict
from support.servers.profiler_servers import FakeProfiler

if TYPE_CHECKING:
    from mldiagnostics_kube.client.api_client import ApiClient
    from support.cluster.api_server_faults import FaultyApiServer
    from support.cluster.operating import Namespace, Object, Operating

pytestmark = pytest.mark.apiserver


async def leave_status(ml: Namespace, holder: str, **changes: object) -> None:
    """Set the status that a process with this name left."""
    now = utc_now()
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
    await leave_status(ml, f"operator-a/{pod['metadata']['uid']}/1795000000-x")
    return ml


async def test_a_live_holder_keeps_its_capture_until_its_pod_is_gone(prepared: Namespace, operator: Operating) -> None:
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


async def test_after_its_deadline_a_capture_is_taken_over_from_a_live_holder(
    prepared: Namespace, operator: Operating
) -> None:
    await leave_status(prepared, (await prepared.status())["holder"], attempt=2, deadline="2026-01-01T00:00:00Z")
    await prepared.pod("a", 1)
    assert verdict(await prepared.finished()) == ("Failed", "Interrupted")
    assert operator.captures


async def test_a_capture_that_was_cancelled_meanwhile_is_not_retried(prepared: Namespace, operator: Operating) -> None:
    async with FakeProfiler().serving(prepared.ip) as server:
        await prepared.pod("a", server.port)
        await prepared.change("capture", cancel=True)
        await prepared.remove_pod("operator-a")
        status = await prepared.finished()
    assert verdict(status) == ("Failed", "Cancelled")
    assert status["results"][0]["state"] == "Cancelled"
    assert server.requests == []
    assert operator.captures


@pytest.mark.parametrize("resource", ["mldiagnosticsconnections", "pods"])
async def test_a_passing_rejection_does_not_end_the_capture(
    prepared: Namespace, faulty: FaultyApiServer, faulty_cluster: ApiClient, resource: str
) -> None:
    await prepared.remove_pod("operator-a")
    body = await prepared.cluster.get(f"{connections(prepared.name)}/capture")
    meta = ObjectMeta.model_validate(body["metadata"])
    faulty.faults = {f"GET {resource}": "forbid"}
    waiting = asyncio.create_task(
        until_abandoned(meta, faulty_cluster, me="operator-b/uid/1-x", namespace=prepared.name, clock=utc_now)
    )
    await faulty.clear_after_first()
    assert (await waiting).attempt == 1
