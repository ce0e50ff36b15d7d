from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from mldiagnostics_api.v1alpha1 import ObjectMeta
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import RequestRejected
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures.reporter import CaptureReporter
from mldiagnostics_operator.telemetry import OperatorMetrics
from support.cluster import builders
from support.cluster.plans import plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class ApiServer:
    """Answers every write with the status, and counts the requests."""

    cluster: ApiClient = field(init=False)
    status: int = 200
    requests: int = 0

    async def answer(self, _: web.Request) -> web.Response:
        self.requests += 1
        return web.json_response({"message": "an answer"}, status=self.status)


@pytest.fixture
async def api() -> AsyncIterator[ApiServer]:
    server = ApiServer()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    async with TestServer(app) as serving:
        server.cluster = ApiClient(Credentials(str(serving.make_url("")).rstrip("/"), fixed("")))
        yield server
        await server.cluster.aclose()


@pytest.fixture
def reporter(api: ApiServer) -> CaptureReporter:
    meta = ObjectMeta.model_validate(builders.connection("a", namespace="ml", podName="a")["metadata"])
    return CaptureReporter(api.cluster, OperatorMetrics(), meta, None, me="me", clock=utc_now)


async def test_reports_on_the_way_never_fail_a_capture(api: ApiServer, reporter: CaptureReporter) -> None:
    api.status = 400
    await reporter.report_waiting("PodBusy", "queued")
    assert api.requests == 1
    reporter.report_progress(plan(), [])
    sending = asyncio.create_task(reporter.send_updates())
    async with asyncio.timeout(60):
        while api.requests < 2:  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.01)
    assert not sending.done()
    sending.cancel()
    with pytest.raises(RequestRejected):
        await reporter.announce_intent(plan())


async def test_a_final_status_waits_for_the_permission_to_write_it(api: ApiServer, reporter: CaptureReporter) -> None:
    api.status = 403
    finishing = asyncio.create_task(reporter.refuse("PodNotFound", "no pod a"))
    async with asyncio.timeout(60):
        while api.requests < 2 and not finishing.done():  # noqa: ASYNC110 - the server counts
            await asyncio.sleep(0.01)
        api.status = 200
        await finishing
