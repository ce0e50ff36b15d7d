"""HTTPS server for reviews: paths, deadlines, and bounds on requests in flight."""

import asyncio
import re
import ssl
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import parse_qsl

from aiohttp import web
from mldiagnostics_api.manifests.registration import AUTHOR_PATH
from mldiagnostics_kube.serving.bounded_server import BoundedServer, Bounds, Respond

from mldiagnostics_webhook import limits
from mldiagnostics_webhook.author_review import answer_author
from mldiagnostics_webhook.review_handler import LabelSource, ReviewResponse
from mldiagnostics_webhook.telemetry import WebhookMetrics

FINISH_S: Final = 5.0
_DEFAULT_TIMEOUT_S: Final = 3.0
# Part of the API server's timeout that is kept for the response to arrive.
_MARGIN_S: Final = 0.25
_PATHS: Final = {f"/mutate/{source}": source for source in LabelSource}
_JSON: Final = {"Content-Type": "application/json"}
_TEXT: Final = {"Content-Type": "text/plain"}
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(?:\d{1,6}(?:\.\d{1,9})?(?:h|ms|m|s))+")
_PART: Final = re.compile(r"([\d.]+)(h|ms|m|s)")


@dataclass(frozen=True, slots=True)
class ReviewPath:
    """Meaning of a request's path and query."""

    source: LabelSource | None
    """None for a path without pods."""
    has_schedules: bool
    timeout_s: float


@lru_cache(maxsize=64)  # an API server always sends the same
def target(raw: str) -> ReviewPath:
    """Parse path and query; an invalid `timeout` (not like `1m0s`) counts as 3 s."""
    path, _, query = raw.partition("?")
    text = dict(parse_qsl(query)).get("timeout", "")
    timeout_s = _DEFAULT_TIMEOUT_S
    if _DURATION.fullmatch(text):
        timeout_s = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return ReviewPath(_PATHS.get(path), path == AUTHOR_PATH, timeout_s)


class Reviewer(Protocol):
    """Function that answers a review; lookups take at most `within_s` seconds."""

    async def __call__(self, source: LabelSource, body: bytes, *, within_s: float) -> ReviewResponse:
        """Return the response."""


class ReviewServer:
    """Serves reviews over HTTPS."""

    def __init__(
        self, answer: Reviewer, telemetry: WebhookMetrics, *, read_s: float = limits.READ_S, finish_s: float = FINISH_S
    ) -> None:
        self._answer = answer
        self._telemetry = telemetry
        bounds = Bounds(
            connections=limits.CONNECTIONS,
            body_bytes=limits.MAX_BODY_BYTES,
            small_bytes=limits.SMALL_BODY_BYTES,
            large_bytes=limits.LARGE_BODIES_BYTES,
            read_s=read_s,
            finish_s=finish_s,
        )
        self._server = BoundedServer(self._route, bounds, rejected=self._rejected, closed=telemetry.closed)
        telemetry.in_flight(lambda: self._server.in_flight)

    def leave(self) -> None:
        """Close each connection after its next response."""
        self._server.leaving = True

    def serving(self, port: int, tls: ssl.SSLContext | None) -> AbstractAsyncContextManager[int]:
        """Serve on all addresses while the block runs, and return the port.

        Raises:
            OSError: the port is in use.
        """
        return self._server.serving(port, tls)

    def _route(self, request: web.BaseRequest) -> Respond | web.Response:
        to = target(request.raw_path)
        if to.source is None and not to.has_schedules:
            return web.Response(status=404)
        if request.method != "POST":
            return web.Response(status=405)
        if to.source is None:
            return self._review_author
        source, until_s = to.source, asyncio.get_running_loop().time() + to.timeout_s - _MARGIN_S
        return lambda body: self._review(source, body, until_s)

    async def _review(self, source: LabelSource, body: bytes, until_s: float) -> web.Response:
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        answer = await self._answer(source, body, within_s=max(until_s - start_s, 0.0))
        self._telemetry.took(loop.time() - start_s)
        return _response(answer)

    async def _review_author(self, body: bytes) -> web.Response:
        return _response(answer_author(body))

    def _rejected(self, reason: str) -> None:
        """Count a review that is rejected unread; its pod is created unchanged."""
        self._telemetry.reviewed(result="refused", reason=reason)


def _response(answer: ReviewResponse) -> web.Response:
    return web.Response(status=answer.status, body=answer.body, headers=_JSON if answer.status == 200 else _TEXT)
