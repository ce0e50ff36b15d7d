"""The HTTPS side: a path for each place of the label, bounds on what is under way, and an end that loses nothing."""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl

from aiohttp import web
from mldiagnostics_api.service.http import listen

from mldiagnostics_webhook.answering import Answer, Seen
from mldiagnostics_webhook.telemetry import Telemetry

MAX_BODY_BYTES: Final = 4 * 2**20
"""The API server takes objects of 3 MiB; a review adds its frame."""
MAX_BODIES_BYTES: Final = 8 * 2**20
"""Of all reviews under way; parsed, a hostile one takes twenty times its size."""
MAX_REVIEWS: Final = 256
READ_S: Final = 3.0
FINISH_S: Final = 5.0
# How long the rest of a refused body is still read, so that its sender gets to see the answer.
_LINGER_S: Final = 0.5
_DEFAULT_TIMEOUT_S: Final = 3.0
# What the way back to the API server may take of its timeout.
_MARGIN_S: Final = 0.25
_PATHS: Final = {f"/mutate/{seen}": seen for seen in Seen}
_JSON: Final = {"Content-Type": "application/json"}
_TEXT: Final = {"Content-Type": "text/plain"}
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(?:\d{1,6}(?:\.\d{1,9})?(?:h|ms|m|s))+")
_PART: Final = re.compile(r"([\d.]+)(h|ms|m|s)")


@dataclass(frozen=True, slots=True)
class Target:
    """What a call's path and query say."""

    seen: Seen | None
    """None for a path that nothing answers."""
    timeout_s: float


@lru_cache(maxsize=64)  # an API server calls with one and the same
def target(raw: str) -> Target:
    """Read path and query; a `timeout` that is no Go duration such as `3s` or `1m0s` counts as the default of 3 s."""
    path, _, query = raw.partition("?")
    text = dict(parse_qsl(query)).get("timeout", "")
    timeout_s = _DEFAULT_TIMEOUT_S
    if _DURATION.fullmatch(text):
        timeout_s = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return Target(_PATHS.get(path), timeout_s)


class Answerer(Protocol):
    """Answers the bytes of a review; lookups take no longer than `within_s`."""

    async def __call__(self, seen: Seen, body: bytes, *, within_s: float) -> Answer:
        """Give the answer."""


class Server:
    """Reviews under way, and how many more there may be."""

    def __init__(
        self, answer: Answerer, telemetry: Telemetry, *, read_s: float = READ_S, finish_s: float = FINISH_S
    ) -> None:
        self._answer = answer
        self._telemetry = telemetry
        self._read_s = read_s
        self._finish_s = finish_s
        self._reviews = 0
        self._bytes = 0
        telemetry.in_flight(lambda: self._reviews)
        self.leaving = False
        """Whether connections are closed after their next answer."""

    @asynccontextmanager
    async def serving(self, port: int, tls: ssl.SSLContext | None) -> AsyncIterator[int]:
        """Serve on all addresses for the duration of the block; gives the port, chosen by the system for 0.

        At the end no connection is taken any more, and what is under way is finished. Raises OSError if the port is
        taken.
        """
        server = web.Server(self._handle, request_factory=_request, access_log=None, lingering_time=_LINGER_S)
        runner = web.ServerRunner(server, shutdown_timeout=self._finish_s)
        listener = listen(port)
        await runner.setup()
        try:
            await web.SockSite(runner, listener, ssl_context=tls).start()
            yield listener.getsockname()[1]
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        to = target(request.raw_path)
        if to.seen is None or request.method != "POST":
            return web.Response(status=405 if to.seen else 404)
        size = request.content_length
        weight = MAX_BODY_BYTES if size is None else size
        if weight > MAX_BODY_BYTES:
            response = self._refuse(413, "TooLarge")
        elif self._reviews >= MAX_REVIEWS or self._bytes + weight > MAX_BODIES_BYTES:
            response = self._refuse(429, "Busy")
        else:
            self._reviews += 1
            self._bytes += weight
            try:
                response = await self._review(to.seen, to.timeout_s, request)
            finally:
                self._reviews -= 1
                self._bytes -= weight
        if self.leaving:
            response.force_close()
        return response

    async def _review(self, seen: Seen, timeout_s: float, request: web.BaseRequest) -> web.Response:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + timeout_s - _MARGIN_S
        try:
            if request.content.is_eof() and request.content_length:  # as a rule: it came along with its head
                body = request.content.read_nowait()
            else:
                async with asyncio.timeout(self._read_s):
                    body = await request.read()
        except TimeoutError:
            return self._refuse(408, "ReadTimedOut")
        except web.HTTPRequestEntityTooLarge:
            return self._refuse(413, "TooLarge")
        begun_s = loop.time()
        answer = await self._answer(seen, body, within_s=max(until_s - begun_s, 0.0))
        self._telemetry.took(loop.time() - begun_s)
        return web.Response(status=answer.status, body=answer.body, headers=_JSON if answer.status == 200 else _TEXT)

    def _refuse(self, status: int, reason: str) -> web.Response:
        """Give a review up; the API server then creates the pod as it is."""
        self._telemetry.reviewed(result="refused", reason=reason)
        response = web.Response(status=status, text=f"{reason}\n")
        response.force_close()
        return response


def _request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    """Make a request whose body may be as long as those of reviews."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=MAX_BODY_BYTES)
