"""Bounds on requests: their bodies, their number at a time, and the time of each."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from aiohttp import web
from mldiagnostics_kube.serving.connection import Stage

from mldiagnostics_view.endpoints.delivery import enter_stage
from mldiagnostics_view.endpoints.problems import RequestProblem, problem_response
from mldiagnostics_view.limits import MAX_REQUESTS, READ_BODY_S, REQUEST_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RequestTurns:
    """Bounds parallel requests.

    A request has a turn only while the server works for it, not while its client sends or reads.

    Args:
        is_stream: Whether the response to a request is a stream; these have bounds of their own.
    """

    def __init__(self, is_stream: Callable[[web.Request], bool]) -> None:
        self._is_stream = is_stream
        self._requests = 0

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request within the bounds, once its body has arrived."""
        if self._is_stream(request):
            return await handler(request)
        if request.method == "POST" and request.can_read_body:
            await _read_body(request)
        if self._requests >= MAX_REQUESTS:
            response = problem_response(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests at a time; try again.")
            response.headers["Retry-After"] = "1"
            return response
        self._requests += 1
        limit = asyncio.timeout(REQUEST_S)
        try:
            async with limit:
                return await handler(request)
        except TimeoutError:
            if not limit.expired():
                raise
            return problem_response(
                HTTPStatus.GATEWAY_TIMEOUT,
                f"The place of the runs did not respond within {REQUEST_S:.0f} s; check that it can be reached.",
            )
        finally:
            self._requests -= 1


async def _read_body(request: web.Request) -> None:
    """Read the body, which the request keeps for its handler."""
    enter_stage(request, Stage.READING)
    try:
        async with asyncio.timeout(READ_BODY_S):
            await request.read()
    except TimeoutError:
        raise RequestProblem(HTTPStatus.REQUEST_TIMEOUT, f"The body took more than {READ_BODY_S:g} s.") from None
    except web.RequestPayloadError:
        raise RequestProblem(HTTPStatus.BAD_REQUEST, "The body is not valid HTTP.") from None
    except RuntimeError:  # aiohttp's, if the client had left before this task began
        if request.protocol.connected:
            raise
        raise ConnectionResetError("the client left before its request was whole") from None
    enter_stage(request, Stage.ANSWERING)
