"""API server for metadata (list, watch, get) with configurable delays and errors."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aiohttp import web
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.credentials import Credentials, fixed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Object = dict[str, Any]


@dataclass
class MetadataServer:
    """Objects by the path of their collection; other kinds do not exist."""

    kinds: dict[str, list[Object]]
    slow_s: float = 0.0
    """Delay of a GET of one object, in seconds."""
    status: dict[str, int] = field(default_factory=dict)
    """HTTP status of every answer for a collection."""
    hidden: set[str] = field(default_factory=set)
    """Names that lists and watches omit, as if the watch were late."""
    requested: list[str] = field(default_factory=list)
    """Paths of GET requests of single objects."""
    _restart: asyncio.Event = field(default_factory=asyncio.Event)

    def restart_watches(self) -> None:
        """End all watches, as an API server that restarts does."""
        self._restart.set()
        self._restart = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        collection, name = self._split(path)
        if status := self.status.get(collection):
            return web.json_response({"message": f"test returns {status}"}, status=status)
        if collection not in self.kinds:
            return web.json_response({"message": "no such kind"}, status=404)
        if request.query.get("watch"):
            return await self._watch(request)
        if not name:
            items = [item for item in self.kinds[collection] if item["metadata"]["name"] not in self.hidden]
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": items})
        self.requested.append(path)
        await asyncio.sleep(self.slow_s)
        space, _, plain = name.rpartition("/")
        candidates = (i for i in self.kinds[collection] if i["metadata"]["name"] == plain)
        item = next((i for i in candidates if i["metadata"].get("namespace", "") == space), None)
        return web.json_response(item or {"message": f"{name} not found"}, status=200 if item else 404)

    def _split(self, path: str) -> tuple[str, str]:
        """Split `/apis/batch/v1/namespaces/ml/jobs/a` into `/apis/batch/v1/jobs` and `ml/a`."""
        parts = path.strip("/").split("/")
        head, rest = parts[: 2 if parts[0] == "api" else 3], parts[2 if parts[0] == "api" else 3 :]
        if len(rest) > 2 and rest[0] == "namespaces":
            return "/" + "/".join([*head, rest[2]]), f"{rest[1]}/{'/'.join(rest[3:])}"
        return "/" + "/".join([*head, rest[0]]), "/".join(rest[1:])

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "2"}}}
        await response.write(json.dumps(bookmark).encode() + b"\n")
        await self._restart.wait()
        return response


@asynccontextmanager
async def metadata_server(kinds: dict[str, list[Object]]) -> AsyncIterator[tuple[MetadataServer, ApiClient]]:
    """Serve these objects while the block runs; yield the server and a client."""
    server = MetadataServer(kinds)
    app = web.Application()
    app.router.add_route("GET", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    cluster = ApiClient(Credentials(f"http://127.0.0.1:{runner.addresses[0][1]}", fixed("token")))
    try:
        yield server, cluster
    finally:
        await cluster.aclose()
        await runner.cleanup()
