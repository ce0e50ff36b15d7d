from __future__ import annotations

import asyncio

from aiohttp import web
from aiohttp.test_utils import TestServer
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.captures.expiry import Expiry
from mldiagnostics_operator.captures.status import RESULTS_BYTES
from support.cluster import builders

MUCH = 16 * 2**20


async def test_many_large_captures_are_never_in_memory_at_once() -> None:
    large = builders.connection("large", namespace="ml", podName="a") | {"status": {"message": "x" * RESULTS_BYTES}}
    stored = [large] * (2 * MUCH // RESULTS_BYTES)
    sizes: list[int] = []
    listed = asyncio.Event()

    async def serve(request: web.Request) -> web.Response:
        first = int(request.query.get("continue", "0"))
        after = first + int(request.query["limit"])
        more = {"continue": str(after)} if after < len(stored) else {}
        answer = web.json_response({"metadata": more, "items": stored[first:after]})
        sizes.append(answer.content_length or 0)
        if not more and "Succeeded" in request.query["fieldSelector"]:
            listed.set()
        return answer

    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", serve)
    async with TestServer(app) as server:
        cluster = ApiClient(Credentials(str(server.make_url("")).rstrip("/"), fixed("")))
        looking = asyncio.create_task(Expiry(cluster, (), default_ttl_s=None, clock=utc_now).run())
        try:
            await asyncio.wait_for(listed.wait(), 60)
        finally:
            looking.cancel()
            await asyncio.wait({looking})
            await cluster.aclose()
    assert sum(sizes) > 2 * len(stored) * RESULTS_BYTES, "all were listed, failed and succeeded"
    assert max(sizes) < MUCH
