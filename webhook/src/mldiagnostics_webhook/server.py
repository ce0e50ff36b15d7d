"""The HTTPS side: a path for each place of the label, bounds on what is under way, and an end that loses nothing."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Final, Protocol
from urllib.parse import parse_qsl

from aiohttp import web
from mldiagnostics_api.service.http import listen

from mldiagnostics_webhook.answering import Answer, Seen
from mldiagnostics_webhook.telemetry import Telemetry

MAX_BODY_BYTES: Final = 4 * 2**20
"""The API server takes objects of 3 MiB; a review adds its frame."""
MAX_BODIES_BYTES: Final = 16 * 2**20
MAX_REVIEWS: Final = 256
READ_S: Final = 3.0
FINISH_S: Final = 5.0
# How long the rest of a refused body is still read, so that its sender gets to see the answer.
_LINGER_S: Final = 0.5
_DEFAULT_TIMEOUT_S: Final = 3.0
# What the way back to the API server may take of its timeout.
_MARGIN_S: Final = 0.25
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(?:\d{1,6}(?:\.\d{1,9})?(?:h|ms|m|s))+")
_PART: Final = re.compile(r"([\d.]+)(h|ms|m|s)")


@lru_cache(maxsize=64)  # an API server asks with one and the same
def timeout_s(query: str) -> float:
    """Read the `timeout` of a call, a Go duration such as `3s` or `1m0s`; what is none counts as the default of 3 s."""
    text = dict(parse_qsl(query)).get("timeout", "")
    if not _DURATION.fullmatch(text):
        return _DEFAULT_TIMEOUT_S
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


class Answerer(Protocol):
    """Answers the bytes of a review; lookups take no longer than `within_s`."""

    async def __call__(self, seen: Seen, body: bytes, *, within_s: float) -> Answer:
        """Give the answer."""


class Server:
    """Reviews under way, and how many more there may be."""

    def __init__(self, answer: Answerer, telemetry: Telemetry) -> None:
        self._answer = answer
        self._telemetry = telemetry
        self._reviews = 0
        self._bytes = 0
        self.leaving = False
        """Whether connections are closed after their next answer."""

    @asynccontextmanager
    async def serving(self, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Serve on all addresses for the duration of the block; gives the port, chosen by the system for 0.

        At the end no connection is taken any more, and what is under way is finished. Raises OSError if the port is
        taken.
        """
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        for seen in Seen:
            app.router.add_post(f"/mutate/{seen}", partial(self._handle, seen))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=FINISH_S, lingering_time=_LINGER_S)
        listener = listen(port)
        await runner.setup()
        try:
            await web.SockSite(runner, listener, ssl_context=tls).start()
            yield listener.getsockname()[1]
        finally:
            await runner.cleanup()

    async def _handle(self, seen: Seen, request: web.Request) -> web.Response:
        size = request.content_length
        weight = MAX_BODY_BYTES if size is None else size
        if weight > MAX_BODY_BYTES:
            response = self._refuse(413, "TooLarge")
        elif self._reviews >= MAX_REVIEWS or self._bytes + weight > MAX_BODIES_BYTES:
            response = self._refuse(429, "Busy")
        else:
            self._admit(1, weight)
            try:
                response = await self._review(seen, request)
            finally:
                self._admit(-1, -weight)
        if self.leaving:
            response.force_close()
        return response

    async def _review(self, seen: Seen, request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s(request.query_string) - _MARGIN_S
        try:
            async with asyncio.timeout(READ_S):
                body = await request.read()
        except TimeoutError:
            return self._refuse(408, "ReadTimedOut")
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, "TooLarge")
        begun_s = loop.time()
        answer = await self._answer(seen, body, within_s=max(until_s - begun_s, 0.0))
        self._telemetry.took(loop.time() - begun_s)
        return web.Response(
            status=answer.status,
            body=answer.body,
            content_type="application/json" if answer.status == 200 else "text/plain",
        )

    def _admit(self, reviews: int, size_bytes: int) -> None:
        self._reviews += reviews
        self._bytes += size_bytes
        self._telemetry.in_flight(self._reviews)

    def _refuse(self, status: int, reason: str) -> web.Response:
        """Give a review up; the API server then creates the pod as it is."""
        self._telemetry.reviewed(result="refused", reason=reason)
        response = web.Response(status=status, text=f"{reason}\n")
        response.force_close()
        return response
