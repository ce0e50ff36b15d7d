"""The plain HTTP side of a process: /healthz, /readyz and /metrics."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web

from mldiagnostics_kube.metrics import CONTENT_TYPE


class Health(Protocol):
    """What the probes report."""

    def live(self) -> tuple[bool, str]:
        """Whether a restart would not help, and what is going on."""

    def ready(self) -> tuple[bool, str]:
        """Whether this process serves, and what it is doing."""


@asynccontextmanager
async def serving(port: int, health: Health, exposition: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serve on all addresses for the duration of the block; gives the port, chosen by the system for 0.

    Raises OSError if the port is taken.
    """

    async def healthz(_: web.Request) -> web.Response:
        return _probe(*health.live())

    async def readyz(_: web.Request) -> web.Response:
        return _probe(*health.ready())

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=exposition(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    listener = listen(port)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()


def listen(port: int) -> socket.socket:
    """Listen once on all addresses of both families, so that there is one port to speak of."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=both)


def _probe(good: bool, text: str) -> web.Response:
    return web.Response(status=200 if good else 503, text=f"{text}\n")
