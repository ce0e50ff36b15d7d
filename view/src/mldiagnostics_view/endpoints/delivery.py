"""Bounds on connections, and on responses that their clients do not read."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics.capture.tasks import cancel_all
from mldiagnostics_kube.serving.connection import Connection, ConnectionTimes, Stage
from mldiagnostics_kube.serving.connections import ConnectionServer

from mldiagnostics_view.endpoints.problems import problem_response
from mldiagnostics_view.limits import (
    DELIVERY_S,
    HEAD_S,
    IDLE_S,
    MAX_CONNECTIONS,
    MAX_HEAD_LINES,
    MAX_QUERY_BYTES,
    MAX_UNREAD_BYTES,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_SHUTDOWN_S: Final = 1.0
_TIMES: Final = ConnectionTimes(first_request_s=HEAD_S, idle_s=IDLE_S, request_s=float("inf"))
"""`RequestTurns` bounds requests, and `EventStreams` writes: a stream lasts as long as its page."""
_CONNECTION: Final = web.RequestKey("connection", Connection)


@asynccontextmanager
async def accepting(app: web.Application, listener: socket.socket) -> AsyncIterator[int]:
    """Serve an application on a bounded number of connections while the block runs.

    A connection without a whole request is closed after `HEAD_S`, an idle one after `IDLE_S`. If there are too many,
    the oldest one that waits for its client is closed for a new one.

    Yields:
        The port.
    """
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    unbounded = runner.server
    assert unbounded is not None  # noqa: S101 - `setup` makes it

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        connection = request[_CONNECTION] = server.connection(request)
        connection.enter(Stage.ANSWERING)
        try:
            return await unbounded.request_handler(request)
        finally:
            connection.enter(Stage.IDLE)

    server = ConnectionServer(
        handle,
        limit=MAX_CONNECTIONS,
        times=_TIMES,
        closed=lambda _: None,
        head_line_bytes=2 * MAX_QUERY_BYTES,  # a longer query gets a sentence from the guard
        head_lines=MAX_HEAD_LINES,
        request_factory=unbounded.request_factory,
        handler_cancellation=False,  # work in a thread goes on anyway, and its turn must not be given to another
    )
    loops = [asyncio.create_task(each) for each in (server.accept(listener, None), server.close_late())]
    try:
        yield listener.getsockname()[1]
    finally:
        await cancel_all(loops)
        listener.close()
        server.pre_shutdown()
        await runner.shutdown()
        await server.shutdown(_SHUTDOWN_S)
        await runner.cleanup()


class ResponseDelivery:
    """Writes responses, and bounds the bytes that clients have not read.

    It is the first of all middlewares.

    If they are too many, the response that has been read for the longest time is given up with its connection: slow
    readers make room for others.
    """

    def __init__(self) -> None:
        self._unread: dict[Connection, int] = {}

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request and wait until its client has read the response."""
        try:
            response = await handler(request)
        except ConnectionError:  # the client left before its request was whole, or a store has closed a connection
            response = problem_response(HTTPStatus.BAD_GATEWAY, "A connection of this request broke; try again.")
        if not response.prepared:  # else a stream, which has written itself
            await self._deliver(request, response)
        return response

    async def _deliver(self, request: web.Request, response: web.StreamResponse) -> None:
        body = response.body if isinstance(response, web.Response) else None
        size = len(body) if isinstance(body, bytes) else 0
        self._make_room(size)
        connection = request[_CONNECTION]
        connection.enter(Stage.WRITING)
        self._unread[connection] = size
        try:
            async with asyncio.timeout(DELIVERY_S):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            connection.abort()
        except ConnectionError:  # the client is gone
            pass
        finally:
            self._unread.pop(connection, None)

    def _make_room(self, size: int) -> None:
        while self._unread and sum(self._unread.values()) + size > MAX_UNREAD_BYTES:
            oldest = next(iter(self._unread))
            del self._unread[oldest]
            oldest.abort()


def enter_stage(request: web.Request, stage: Stage) -> None:
    """Begin a stage of the connection of a request."""
    request[_CONNECTION].enter(stage)
