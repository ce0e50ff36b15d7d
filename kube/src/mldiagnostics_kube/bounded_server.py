"""An HTTP server with bounds on bytes, time and parallel requests."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from mldiagnostics_kube.http import listen

# How long the rest of a rejected body is read, so that its sender can read the response.
_LINGER_S: Final = 0.5

Respond = Callable[[bytes], Awaitable[web.Response]]
"""Returns the response to a request body."""
Route = Callable[[web.BaseRequest], Respond | web.Response]
"""Reads the head of a request and returns its handler, or a response at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a server; sizes in bytes, times in seconds."""

    body_bytes: int
    """Largest body of one request."""
    bodies_bytes: int
    """Bodies of all requests in flight together."""
    requests: int
    """Requests in flight."""
    read_s: float
    """Time for a body to arrive."""
    finish_s: float
    """Time for the requests in flight to finish when the server stops."""


class BoundedServer:
    """An HTTP server that rejects requests beyond its bounds.

    A request beyond a bound gets status 408 (`ReadTimedOut`), 413 (`TooLarge`) or 429 (`Busy`), and its connection is
    closed.

    Args:
        route: Chooses the handler of a request.
        bounds: Limits of the server.
        rejected: Called with the reason of each rejection, for metrics.

    Example:
        async def echo(body: bytes) -> web.Response:
            return web.Response(body=body)

        bounds = Bounds(body_bytes=3 << 20, bodies_bytes=16 << 20, requests=64, read_s=5, finish_s=10)
        server = BoundedServer(lambda request: echo, bounds, rejected=print)
        async with server.serving(8443, tls) as port:
            await stop.wait()
    """

    def __init__(self, route: Route, bounds: Bounds, rejected: Callable[[str], None]) -> None:
        self._route = route
        self._bounds = bounds
        self._rejected = rejected
        self._bytes = 0
        self.in_flight = 0
        self.leaving = False
        """Whether connections are closed after their next response."""

    @asynccontextmanager
    async def serving(self, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Serve on all addresses while the block runs; then finish the requests in flight.

        Args:
            port: Port to listen on; 0 lets the system choose.
            tls: TLS context; None serves plain HTTP.

        Yields:
            The port that is used.

        Raises:
            OSError: The port is taken.
        """
        server = web.Server(self._handle, request_factory=self._request, access_log=None, lingering_time=_LINGER_S)
        runner = web.ServerRunner(server, shutdown_timeout=self._bounds.finish_s)
        listener = listen(port)
        await runner.setup()
        try:
            await web.SockSite(runner, listener, ssl_context=tls).start()
            yield listener.getsockname()[1]
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        respond = self._route(request)
        if isinstance(respond, web.Response):
            return respond
        bounds, size = self._bounds, request.content_length
        weight = bounds.body_bytes if size is None else size
        if weight > bounds.body_bytes:
            response = self._reject(413, "TooLarge")
        elif self.in_flight >= bounds.requests or self._bytes + weight > bounds.bodies_bytes:
            response = self._reject(429, "Busy")
        else:
            self.in_flight += 1
            self._bytes += weight
            try:
                response = await self._answer(request, respond)
            finally:
                self.in_flight -= 1
                self._bytes -= weight
        if self.leaving:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest, respond: Respond) -> web.Response:
        try:
            if request.content.is_eof() and request.content_length:  # as a rule, the body arrives with the head
                body = request.content.read_nowait()
            else:
                async with asyncio.timeout(self._bounds.read_s):
                    body = await request.read()
        except TimeoutError:
            return self._reject(408, "ReadTimedOut")
        except web.HTTPRequestEntityTooLarge:
            return self._reject(413, "TooLarge")
        return await respond(body)

    def _reject(self, status: int, reason: str) -> web.Response:
        self._rejected(reason)
        response = web.Response(status=status, text=f"{reason}\n")
        response.force_close()
        return response

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        """Make a request whose body may be as long as the bound allows."""
        loop, limit = asyncio.get_running_loop(), self._bounds.body_bytes
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)
