"""The plain HTTP server of a process: `/healthz`, `/readyz` and `/metrics`."""

import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web

from mldiagnostics_kube.metrics import CONTENT_TYPE


class Health(Protocol):
    """State of a process for the probes of the kubelet."""

    def live(self) -> tuple[bool, str]:
        """Return False if the process needs a restart, with a text for people."""

    def ready(self) -> tuple[bool, str]:
        """Return whether the process serves, with a text for people."""


@asynccontextmanager
async def serving(port: int, health: Health, exposition: Callable[[], bytes]) -> AsyncIterator[int]:
    """Serve probes and metrics on all addresses while the block runs.

    Args:
        port: Port to listen on; 0 lets the system choose.
        health: State that the probes report.
        exposition: Returns the metrics in Prometheus' text format.

    Yields:
        The port that is used.

    Raises:
        OSError: The port is taken.
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
    """Open one socket that listens on all IPv4 and IPv6 addresses."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=both)


def _probe(passed: bool, text: str) -> web.Response:
    return web.Response(status=200 if passed else 503, text=f"{text}\n")
