"""An HTTP server for requests with bodies: bounds on bytes, time and parallel work, and an end that loses nothing."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import web

from mldiagnostics_kube.http import listen

# How long the rest of a rejected body is still read, so that its sender gets to see the answer.
_LINGER_S: Final = 0.5

Respond = Callable[[bytes], Awaitable[web.Response]]
"""Answers a request by its body."""
Route = Callable[[web.BaseRequest], Respond | web.Response]
"""Finds what answers a request from its head, or the answer itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """How much a server takes at once; sizes in bytes, times in seconds."""

    body_bytes: int
    """Of one request."""
    bodies_bytes: int
    """Of all requests in flight."""
    requests: int
    """In flight."""
    read_s: float
    """For a body to arrive."""
    finish_s: float
    """For requests in flight to be answered once the server stops."""


class BoundedServer:
    """Requests in flight, and how many more there may be.

    A request beyond a bound is answered with 408, 413 or 429 and its connection closed; `rejected` gets the reason.
    """

    def __init__(self, route: Route, bounds: Bounds, rejected: Callable[[str], None]) -> None:
        self._route = route
        self._bounds = bounds
        self._rejected = rejected
        self._bytes = 0
        self.in_flight = 0
        self.leaving = False
        """Whether connections are closed after their next answer."""

    @asynccontextmanager
    async def serving(self, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Serve on all addresses for the duration of the block; gives the port, chosen by the system for 0.

        At the end no connection is accepted any more, and requests in flight are finished. Raises OSError if the port
        is taken.
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
            if request.content.is_eof() and request.content_length:  # as a rule: it came along with its head
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
        """Make a request whose body may be as long as the bound says."""
        loop, limit = asyncio.get_running_loop(), self._bounds.body_bytes
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=limit)
