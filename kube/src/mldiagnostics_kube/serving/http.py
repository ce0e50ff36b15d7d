"""The plain HTTP server of a process: `/healthz`, `/readyz` and `/metrics`."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

from aiohttp import web

from mldiagnostics_kube.process.metrics import CONTENT_TYPE
from mldiagnostics_kube.serving.bounded_server import BoundedServer, Bounds

CONNECTIONS: Final = 32
"""A kubelet and a few Prometheus servers need one each. Each costs at most 0.5 MiB."""


class Health(Protocol):
    """State of a process for the probes of the kubelet."""

    def live(self) -> tuple[bool, str]:
        """Return False if the process needs a restart, with a text for people."""

    def ready(self) -> tuple[bool, str]:
        """Return whether the process serves, with a text for people."""


def serving(port: int, health: Health, exposition: Callable[[], bytes]) -> AbstractAsyncContextManager[int]:
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
    pages: dict[str, Callable[[], web.Response]] = {
        "/healthz": lambda: _probe(*health.live()),
        "/readyz": lambda: _probe(*health.ready()),
        "/metrics": lambda: web.Response(body=exposition(), headers={"Content-Type": CONTENT_TYPE}),
    }

    def route(request: web.BaseRequest) -> web.Response:
        page = pages.get(request.path)
        if page is None:
            response = web.Response(status=404)
        else:
            response = page() if request.method in ("GET", "HEAD") else web.Response(status=405)
        response.force_close()
        return response

    return BoundedServer(route, Bounds(connections=CONNECTIONS)).serving(port, None)


def _probe(passed: bool, text: str) -> web.Response:
    return web.Response(status=200 if passed else 503, text=f"{text}\n")
