"""Bounds on connections, on requests at a time, and on responses that their clients do not read."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics_kube.serving.connections import ConnectionServer, ConnectionTimes, Stage

from mldiagnostics_view.endpoints.problems import problem_response
from mldiagnostics_view.limits import (
    DELIVERY_S,
    HEAD_S,
    IDLE_S,
    MAX_CONNECTIONS,
    MAX_HEAD_LINES,
    MAX_QUERY_BYTES,
    MAX_REQUESTS,
    MAX_UNREAD_BYTES,
    REQUEST_S,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import AsyncIterator, Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

__all__ = ["ResponseDelivery", "accepting"]

_SHUTDOWN_S: Final = 1.0
_TIMES: Final = ConnectionTimes(first_request_s=HEAD_S, idle_s=IDLE_S, request_s=float("inf"))
"""`ResponseDelivery` bounds requests, and `EventStreams` writes: a stream lasts as long as its page."""


@asynccontextmanager
async def accepting(app: web.Application, listener: socket.socket) -> AsyncIterator[int]:
    """Serve an application on a bounded number of connections while the block runs.

    A connection without a whole request is closed after `HEAD_S`, an idle one after `IDLE_S`. If there are too many,
    the oldest without a request in flight is closed for a new one.

    Yields:
        The port.
    """
    runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_SHUTDOWN_S)
    await runner.setup()
    unbounded = runner.server
    assert unbounded is not None  # noqa: S101 - `setup` makes it

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        connection = server.connection(request)
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
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)
        listener.close()
        server.pre_shutdown()
        await runner.shutdown()
        await server.shutdown(_SHUTDOWN_S)
        await runner.cleanup()


class ResponseDelivery:
    """Bounds requests: their number, their time, and the bytes that clients have not read.

    Args:
        is_stream: Whether the response to a request is a stream; these have bounds of their own.
    """

    def __init__(self, is_stream: Callable[[web.Request], bool]) -> None:
        self._is_stream = is_stream
        self._requests = 0
        self._unread_bytes = 0

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request within the bounds; the first of all middlewares."""
        if self._is_stream(request):
            return await handler(request)
        if self._requests >= MAX_REQUESTS:
            return _busy("Too many requests at a time; try again.")
        self._requests += 1
        try:
            return await self._deliver(request, await _answer(request, handler))
        finally:
            self._requests -= 1

    async def _deliver(self, request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
        """Write a response; close the connection of a client that does not read it."""
        body = response.body if isinstance(response, web.Response) else None
        size = len(body) if isinstance(body, bytes) else 0
        if self._unread_bytes + size > MAX_UNREAD_BYTES:
            response, size = _busy("Too many responses wait for their readers; try again."), 0
        self._unread_bytes += size
        try:
            async with asyncio.timeout(DELIVERY_S):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:  # the client is gone
            pass
        finally:
            self._unread_bytes -= size
        return response


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        async with asyncio.timeout(REQUEST_S):
            return await handler(request)
    except TimeoutError:
        return problem_response(
            HTTPStatus.GATEWAY_TIMEOUT,
            f"The place of the runs did not respond within {REQUEST_S:.0f} s; check that it can be reached.",
        )


def _busy(detail: str) -> web.Response:
    response = problem_response(HTTPStatus.SERVICE_UNAVAILABLE, detail)
    response.headers["Retry-After"] = "1"
    return response
