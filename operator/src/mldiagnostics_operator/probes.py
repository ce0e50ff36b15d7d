"""The operator's HTTP side: /healthz, /readyz and /metrics."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from aiohttp import web

from mldiagnostics_operator.telemetry import CONTENT_TYPE, Telemetry

# Longer than kopf needs to notice a dead stream (70 s) and to list anew.
WATCH_LAG_LIMIT_S: Final = 120.0


class Stage(StrEnum):
    """What this replica is doing."""

    STARTING = "starting"
    STANDBY = "standby"
    WAITING = "waiting for the custom resource"
    ASIDE = "standing down for a managed add-on"
    LEADING = "leading"
    DRAINING = "finishing what runs"


@dataclass(slots=True)
class Health:
    """What the probes report; the operator keeps it current."""

    stage: Stage = Stage.STARTING
    watch_lag_s: float = 0.0

    def live(self) -> bool:
        """Whether a restart would not help: only a watch that lags behind an answering API server is worth one."""
        return self.watch_lag_s <= WATCH_LAG_LIMIT_S

    def ready(self) -> bool:
        """Whether this replica serves or can take over at any moment."""
        return self.stage not in (Stage.STARTING, Stage.DRAINING)


@asynccontextmanager
async def serving(port: int, health: Health, telemetry: Telemetry) -> AsyncIterator[int]:
    """Serve on all addresses for the duration of the block; gives the port, chosen by the system for 0.

    Raises OSError if the port is taken.
    """

    async def healthz(_: web.Request) -> web.Response:
        text = f"{health.stage}; the watch is {health.watch_lag_s:.0f} s behind the API server\n"
        return web.Response(status=200 if health.live() else 503, text=text)

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(status=200 if health.ready() else 503, text=f"{health.stage}\n")

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=telemetry.exposition(), headers={"Content-Type": CONTENT_TYPE})

    app = web.Application()
    app.add_routes([web.get("/healthz", healthz), web.get("/readyz", readyz), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    listener = _listen(port)
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield listener.getsockname()[1]
    finally:
        await runner.cleanup()


def _listen(port: int) -> socket.socket:
    """Listen once on all addresses of both families, so that there is one port to speak of."""
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    return socket.create_server(("", port), family=family, dualstack_ipv6=both)
