"""A proxy before a real API server that injects faults; for clients it is the API server."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import aiohttp
import yaml
from aiohttp import web
from mldiagnostics_kube.client.credentials import find_access

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    Fault = Literal["hang", "lose", "drop", "forbid"]
    """Never answer; pass on, then never answer; pass on, then drop the connection instead of the answer; answer 403."""

_DEADLINE_S = 60
_END_TO_END = {"accept", "content-type", "impersonate-user", "impersonate-group"}


@dataclass
class FaultyApiServer:
    """An API server with a fault for some requests, by `METHOD resource`, such as `POST pods`."""

    kubeconfig: Path
    """Leads to the proxy, as the same user."""
    faults: dict[str, Fault] = field(default_factory=dict)
    began: asyncio.Event = field(default_factory=asyncio.Event)
    """A request that gets a fault has arrived, and has been passed on if it is to be."""

    async def clear_after_first(self) -> None:
        """Wait until a request has got a fault, and remove the faults."""
        async with asyncio.timeout(_DEADLINE_S):
            await self.began.wait()
        self.faults = {}

    def fault_of(self, request: web.Request) -> Fault | None:
        """Return the fault of a request."""
        names = (f"{request.method} {part}" for part in request.path.split("/"))
        return next((self.faults[name] for name in names if name in self.faults), None)


@asynccontextmanager
async def faulty_api_server(kubeconfig: Path, folder: Path) -> AsyncIterator[FaultyApiServer]:
    """Serve a proxy on a port of its own, without TLS.

    Args:
        kubeconfig: That of the real API server.
        folder: Directory for the kubeconfig of the proxy.
    """
    access = (await find_access({}, path=str(kubeconfig))).credentials
    proxy = FaultyApiServer(folder / "kubeconfig-with-faults")
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        fault = proxy.fault_of(request)
        assert request.transport is not None
        if fault == "hang":
            proxy.began.set()
            await ended.wait()
        if fault == "forbid":
            proxy.began.set()
            return web.json_response({"message": "the roles are not read yet"}, status=403)
        headers = {name: value for name, value in request.headers.items() if name.lower() in _END_TO_END}
        body, url = await request.read(), access.server + request.path_qs
        async with upstream.request(request.method, url, data=body, headers=headers) as response:
            if fault:
                await response.read()
                proxy.began.set()
                if fault == "lose":
                    await ended.wait()
                request.transport.abort()
            passed = web.StreamResponse(status=response.status, headers={"Content-Type": response.content_type})
            await passed.prepare(request)
            async for part in response.content.iter_any():
                await passed.write(part)
            return passed

    app = web.Application(client_max_size=2**24)
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=access.tls() or True, limit=0)) as upstream:
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        _write_kubeconfig(kubeconfig, proxy.kubeconfig, f"http://127.0.0.1:{runner.addresses[0][1]}")
        try:
            yield proxy
        finally:
            ended.set()
            await runner.cleanup()


def _write_kubeconfig(source: Path, target: Path, server: str) -> None:
    """Write a kubeconfig for another server, without the certificates of its user."""
    config = yaml.safe_load(source.read_text())
    config["clusters"][0]["cluster"] = {"server": server}
    user = config["users"][0]["user"]
    config["users"][0]["user"] = {"as": user["as"]} if "as" in user else {}
    target.write_text(yaml.safe_dump(config))
