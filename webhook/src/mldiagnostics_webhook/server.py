"""The HTTPS side: a path for each place of the label, bounds on what is under way, and an end that loses nothing."""

import asyncio
import re
import ssl
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import parse_qsl

from aiohttp import web
from mldiagnostics_kube.bounded_server import BoundedServer, Bounds, Respond

from mldiagnostics_webhook.review_handler import LabelSource, ReviewResponse
from mldiagnostics_webhook.telemetry import WebhookMetrics

MAX_BODY_BYTES: Final = 4 * 2**20
"""The API server takes objects of 3 MiB; a review adds its frame."""
MAX_BODIES_BYTES: Final = 8 * 2**20
"""Of all reviews under way; parsed, a hostile one takes twenty times its size."""
MAX_REVIEWS: Final = 256
READ_S: Final = 3.0
FINISH_S: Final = 5.0
_DEFAULT_TIMEOUT_S: Final = 3.0
# What the way back to the API server may take of its timeout.
_MARGIN_S: Final = 0.25
_PATHS: Final = {f"/mutate/{seen}": seen for seen in LabelSource}
_JSON: Final = {"Content-Type": "application/json"}
_TEXT: Final = {"Content-Type": "text/plain"}
_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION: Final = re.compile(r"(?:\d{1,6}(?:\.\d{1,9})?(?:h|ms|m|s))+")
_PART: Final = re.compile(r"([\d.]+)(h|ms|m|s)")


@dataclass(frozen=True, slots=True)
class ReviewPath:
    """What a call's path and query say."""

    seen: LabelSource | None
    """None for a path that nothing answers."""
    timeout_s: float


@lru_cache(maxsize=64)  # an API server calls with one and the same
def target(raw: str) -> ReviewPath:
    """Read path and query; a `timeout` that is no Go duration such as `3s` or `1m0s` counts as the default of 3 s."""
    path, _, query = raw.partition("?")
    text = dict(parse_qsl(query)).get("timeout", "")
    timeout_s = _DEFAULT_TIMEOUT_S
    if _DURATION.fullmatch(text):
        timeout_s = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    return ReviewPath(_PATHS.get(path), timeout_s)


class Reviewer(Protocol):
    """Answers the bytes of a review; lookups take no longer than `within_s`."""

    async def __call__(self, seen: LabelSource, body: bytes, *, within_s: float) -> ReviewResponse:
        """Give the answer."""


class ReviewServer:
    """Reviews over HTTPS: which path stands for which label, and how long an answer may take."""

    def __init__(
        self, answer: Reviewer, telemetry: WebhookMetrics, *, read_s: float = READ_S, finish_s: float = FINISH_S
    ) -> None:
        self._answer = answer
        self._telemetry = telemetry
        bounds = Bounds(
            body_bytes=MAX_BODY_BYTES,
            bodies_bytes=MAX_BODIES_BYTES,
            requests=MAX_REVIEWS,
            read_s=read_s,
            finish_s=finish_s,
        )
        self._server = BoundedServer(self._route, bounds, self._rejected)
        telemetry.in_flight(lambda: self._server.in_flight)

    def leave(self) -> None:
        """Close each connection after its next answer."""
        self._server.leaving = True

    def serving(self, port: int, tls: ssl.SSLContext | None) -> AbstractAsyncContextManager[int]:
        """Serve on all addresses for the duration of the block; gives the port. Raises OSError if it is taken."""
        return self._server.serving(port, tls)

    def _route(self, request: web.BaseRequest) -> Respond | web.Response:
        to = target(request.raw_path)
        if to.seen is None or request.method != "POST":
            return web.Response(status=405 if to.seen else 404)
        seen, until_s = to.seen, asyncio.get_running_loop().time() + to.timeout_s - _MARGIN_S
        return lambda body: self._review(seen, body, until_s)

    async def _review(self, seen: LabelSource, body: bytes, until_s: float) -> web.Response:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        answer = await self._answer(seen, body, within_s=max(until_s - begun_s, 0.0))
        self._telemetry.took(loop.time() - begun_s)
        return web.Response(status=answer.status, body=answer.body, headers=_JSON if answer.status == 200 else _TEXT)

    def _rejected(self, reason: str) -> None:
        """Count a review that gets no answer; the API server then creates the pod as it is."""
        self._telemetry.reviewed(result="refused", reason=reason)
