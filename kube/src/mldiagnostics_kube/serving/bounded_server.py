"""An HTTP server with bounds on connections, bytes and time."""

import asyncio
import math
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from mldiagnostics.capture.tasks import cancel_all

from mldiagnostics_kube.serving.connection import Connection, ConnectionTimes, Stage
from mldiagnostics_kube.serving.connections import HEAD_LINE_BYTES, HEAD_LINES, ConnectionServer, listen

Respond = Callable[[bytes], Awaitable[web.StreamResponse]]
"""Returns the response to a request body; it may have been sent already."""
Route = Callable[[web.BaseRequest], Respond | web.Response]
"""Reads the head of a request and returns its handler, or a response at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Limits of a server; sizes in bytes, times in seconds."""

    connections: int
    """Connections at a time, and therefore requests in flight."""
    new_per_second: float = math.inf
    """New connections of one address, each of which may cost a handshake; ten times as many in a burst."""
    handshakes_per_second: float = math.inf
    """TLS handshakes of all addresses, which get them in turn: each costs the event loop a millisecond."""
    body_bytes: int = 0
    """Largest body of one request."""
    small_bytes: int = 0
    """Bodies up to this size need no share of `large_bytes`: they never wait for larger ones."""
    large_bytes: int = 0
    """All larger bodies together, counted as they arrive."""
    times: ConnectionTimes = field(default_factory=ConnectionTimes)
    """Longest times of a connection."""
    read_s: float = 1.0
    """Time for a body to arrive."""
    finish_s: float = 1.0
    """Time for the requests in flight to finish when the server stops."""
    head_line_bytes: int = HEAD_LINE_BYTES
    """Longest line of a request's head."""
    head_lines: int = HEAD_LINES
    """Most lines of a request's head."""


class _Rejected(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


def plain_rejection(status: int, reason: str) -> web.Response:
    """Return the response to a rejected request as plain text."""
    return web.Response(status=status, text=f"{reason}\n")


class BoundedServer:
    """An HTTP server that rejects requests beyond its bounds.

    A request beyond a bound gets status 408 (`ReadTimedOut`), 413 (`TooLarge`) or 429 (`Busy`), and its connection is
    closed. If the share of large bodies is used up, the body that has been arriving for the longest time is given up.

    Args:
        route: Chooses the handler of a request.
        bounds: Limits of the server.
        rejected: Called with the reason of each rejected request, for metrics.
        closed: Called with `TooMany`, `TooFast` or `TimedOut` for each connection that the server closes first.
        answer: Makes the response to a rejected request from its status and reason; plain text by default.

    Example:
        async def echo(body: bytes) -> web.Response:
            return web.Response(body=body)

        bounds = Bounds(connections=256, body_bytes=2 << 20, small_bytes=64 << 10, large_bytes=8 << 20)
        server = BoundedServer(lambda request: echo, bounds, rejected=print)
        async with server.serving(8443, tls) as port:
            await stop.wait()
    """

    def __init__(
        self,
        route: Route,
        bounds: Bounds,
        *,
        rejected: Callable[[str], None] = lambda _: None,
        closed: Callable[[str], None] = lambda _: None,
        answer: Callable[[int, str], web.Response] = plain_rejection,
    ) -> None:
        self._route = route
        self._bounds = bounds
        self._rejected = rejected
        self._closed = closed
        self._answer = answer
        self.in_flight = 0
        self.large_bytes = 0
        """Bytes of large bodies that have arrived and are in use."""
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
        bounds = self._bounds
        with listen(port) as listener:
            server = ConnectionServer(
                lambda request: self._handle(server, request),
                limit=bounds.connections,
                new_per_s=bounds.new_per_second,
                handshakes_per_s=bounds.handshakes_per_second,
                times=bounds.times,
                closed=self._closed,
                head_line_bytes=bounds.head_line_bytes,
                head_lines=bounds.head_lines,
            )
            work = [asyncio.create_task(each) for each in (server.accept(listener, tls), server.close_late())]
            try:
                yield listener.getsockname()[1]
            finally:
                await cancel_all(work)
                listener.close()
                server.close_handshakes()
                server.pre_shutdown()
                await server.shutdown(bounds.finish_s)

    async def _handle(self, server: ConnectionServer, request: web.BaseRequest) -> web.StreamResponse:
        connection = server.connection(request)
        self.in_flight += 1
        try:
            respond = self._route(request)
            response: web.StreamResponse
            if isinstance(respond, web.Response):
                response = respond
            else:
                body = await self._read(server, request, connection)
                connection.enter(Stage.ANSWERING)
                response = await respond(body)
        except _Rejected as rejected:
            self._rejected(rejected.reason)
            response = self._answer(rejected.status, rejected.reason)
            response.force_close()
        finally:
            self.in_flight -= 1
            self._release(connection)
            connection.enter(Stage.IDLE)
        if self.leaving:
            response.force_close()
        return response

    async def _read(self, server: ConnectionServer, request: web.BaseRequest, connection: Connection) -> bytes:
        """Read the body; raise _Rejected if it exceeds a bound."""
        content, limit = request.content, self._bounds.body_bytes
        if (request.content_length or 0) > limit:
            raise _Rejected(413, "TooLarge")
        if content.is_eof() and request.content_length:  # as a rule, the body arrives with the head
            whole = content.read_nowait()
            self._charge(server, connection, len(whole))
            return whole
        connection.enter(Stage.READING)
        body = bytearray()
        try:
            async with asyncio.timeout(self._bounds.read_s):
                while part := await content.readany():
                    body += part
                    if len(body) > limit:
                        raise _Rejected(413, "TooLarge")
                    self._charge(server, connection, len(body))
        except TimeoutError:
            raise _Rejected(408, "ReadTimedOut") from None
        return bytes(body)

    def _charge(self, server: ConnectionServer, connection: Connection, size: int) -> None:
        """Take the bytes that have arrived from the share of large bodies."""
        if size <= self._bounds.small_bytes:
            return
        self.large_bytes += size - connection.large_bytes
        connection.large_bytes = size
        while self.large_bytes > self._bounds.large_bytes:
            longest = server.longest_large_body()
            if longest is None or longest is connection:
                raise _Rejected(429, "Busy")
            self._rejected("Busy")
            self._release(longest)
            longest.abort()

    def _release(self, connection: Connection) -> None:
        self.large_bytes -= connection.large_bytes
        connection.large_bytes = 0
