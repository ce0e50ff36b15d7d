from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client.configuration import Configuration
from mldiagnostics_api.v1alpha1 import ObjectMeta
from mldiagnostics_operator.cluster import Cluster, Refused
from mldiagnostics_operator.report import Report
from mldiagnostics_operator.telemetry import Telemetry
from support import builders
from support.plans import plan

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def forbidden() -> AsyncIterator[Cluster]:
    """An API server that has not read its roles yet, as for a moment after its start."""

    async def refuse(_: web.Request) -> web.Response:
        return web.json_response({"message": "forbidden"}, status=403)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    async with TestServer(app) as server:
        configuration = Configuration()
        configuration.host = str(server.make_url("")).rstrip("/")
        cluster = Cluster(configuration)
        yield cluster
        await cluster.close()


async def test_what_is_said_on_the_way_never_fails_a_capture(forbidden: Cluster) -> None:
    meta = ObjectMeta.model_validate(builders.connection("a", namespace="ml", podName="a")["metadata"])
    report = Report(forbidden, Telemetry(), meta, None, me="me")
    await report.note("PodBusy", "queued")
    await report.progress(plan(), [])
    with pytest.raises(Refused):
        await report.intend(plan())
