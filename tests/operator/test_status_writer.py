from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_api.resources import CONNECTIONS
from mldiagnostics_api.v1alpha1 import ConnectionStatus, ObjectMeta
from mldiagnostics_kube.client.apiserver import RequestRejected, Unavailable
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures.status import StatusBuilder
from mldiagnostics_operator.status_writer import ObjectGone, StatusWriter
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster.plans import NOW, plan

if TYPE_CHECKING:
    from cluster.envtest import ApiServer
    from support.cluster.operating import Namespace, Object

pytestmark = pytest.mark.apiserver

ME, OTHER = "operator-b/uid-b/2-b", "operator-a/uid-a/1-a"


def writer(ml: Namespace, body: Object, *, me: str = ME, holder: str | None = None) -> StatusWriter:
    return StatusWriter(
        ml.cluster,
        OperatorMetrics(),
        CONNECTIONS,
        ObjectMeta.model_validate(body["metadata"]),
        me=me,
        holder=holder,
        clock=utc_now,
    )


def running(holder: str) -> ConnectionStatus:
    return StatusBuilder(None, generation=1, me=holder).running(plan(), now=NOW)


async def test_a_written_status_reads_back_unchanged(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    await writer(ml, body).write(running(ME))
    assert ConnectionStatus.model_validate(await ml.status()) == running(ME)


async def test_a_deleted_and_a_recreated_object_are_gone(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    old = writer(ml, body)
    await ml.delete("capture")
    assert await old.is_deleted()
    with pytest.raises(ObjectGone):
        await old.write(running(ME))
    await ml.capture(podName="b")
    with pytest.raises(ObjectGone, match="recreated"):
        await old.write(running(ME))
    assert await old.is_deleted()
    assert await ml.status() == {}


async def test_a_capture_that_another_process_took_over_is_not_written(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    first, second = writer(ml, body, me=OTHER), writer(ml, body, holder=OTHER)
    await first.write(running(OTHER))
    await second.write(running(ME))
    with pytest.raises(ObjectGone, match=ME):
        await first.write(running(OTHER))
    assert (await ml.status())["holder"] == ME
    assert not await first.is_deleted()


async def test_the_second_of_two_processes_that_announce_a_capture_stops(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    late, waited = writer(ml, body), writer(ml, body)
    await waited.write(StatusBuilder(None, generation=1, me=ME).waiting("PodBusy", "queued", now=NOW))
    await writer(ml, body, me=OTHER).write(running(OTHER))
    for outdated in (late, waited):
        with pytest.raises(ObjectGone, match=OTHER):
            await outdated.write(running(ME))
    assert (await ml.status())["holder"] == OTHER


async def test_the_waiting_status_of_an_earlier_process_is_replaced(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    await writer(ml, body, me=OTHER).write(
        StatusBuilder(None, generation=1, me=OTHER).waiting("PodBusy", "queued", now=NOW)
    )
    await writer(ml, body).write(running(ME))
    assert (await ml.status())["holder"] == ME


async def test_a_write_whose_response_was_lost_is_recognised(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    await writer(ml, body, me=OTHER).write(running(OTHER))
    await writer(ml, body, holder=OTHER).write(running(ME))
    outdated = writer(ml, body, holder=OTHER)
    await outdated.write(running(ME).model_copy(update={"message": "again"}))
    assert (await ml.status())["message"] == "again"


async def test_an_invalid_status_is_rejected_and_not_retried(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    wrong = running(ME).model_copy(update={"attempt": -1})
    with pytest.raises(RequestRejected, match="attempt"):
        await asyncio.wait_for(writer(ml, body).write(wrong), 30)


async def test_a_write_waits_for_the_api_server(ml: Namespace, api_server: ApiServer) -> None:
    body = await ml.capture(podName="a")
    await asyncio.to_thread(api_server.stop_apiserver)
    writing = asyncio.create_task(writer(ml, body).write(running(ME)))
    try:
        with pytest.raises(Unavailable):
            await writer(ml, body).write(running(OTHER), until=asyncio.get_running_loop().time())
    finally:
        await asyncio.to_thread(api_server.start_apiserver)
    await asyncio.wait_for(writing, 60)
    assert (await ml.status())["holder"] == ME


async def test_an_event_names_its_object(ml: Namespace) -> None:
    body = await ml.capture(podName="a")
    await writer(ml, body).announce("CaptureStarted", "x" * 5000)
    assert await ml.events(last="CaptureStarted") == ["CaptureStarted"]
