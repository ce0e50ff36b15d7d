"""Streams of events: a page learns that its runs or its curves have changed."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import orjson
from aiohttp import web
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_STREAMS, PING_S, REFRESH_S, WRITE_S
from mldiagnostics_view.sources.source import RunUnknown

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping


_WHILE_READING_S: Final = 0.5
"""Pause between two looks at something that grows fast: the curves of a page fill while a reader is at work."""


LOOK_FAILURES: Final = (RunUnknown, MLDiagnosticsError, ClusterError, OSError)
"""A run that was deleted, or a source that does not respond."""


class EventStreams:
    """Open streams, at most `MAX_STREAMS`."""

    def __init__(self) -> None:
        self._open: set[asyncio.Task[Any]] = set()
        self._is_ending = False

    async def aclose(self, _app: web.Application) -> None:
        """End all streams as whole responses; browsers then connect again."""
        self._is_ending = True
        for task in self._open:
            task.cancel()

    async def send(
        self, request: web.Request, looks: Mapping[str, Callable[[], Awaitable[tuple[Any, bool]]]]
    ) -> web.StreamResponse:
        """Send an event at each change of a document, until the client leaves.

        If a look fails, the stream ends with an event of the first one: the page reads again, and shows the reason.

        Args:
            request: The request of the stream.
            looks: By name of the event: returns a small document, and whether it is still growing fast.
        """
        if len(self._open) >= MAX_STREAMS:
            raise RequestProblem(
                HTTPStatus.SERVICE_UNAVAILABLE,
                f"More than {MAX_STREAMS} pages are open; close some to follow this one.",
            )
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"})
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a handler runs in a task
        self._open.add(task)
        try:
            await response.prepare(request)
            try:
                await self._follow(request, response, looks)
            except LOOK_FAILURES as failure:
                if isinstance(failure, TimeoutError | ConnectionError):
                    raise
                # The head is sent, so the page learns the reason from the request that this event leads to.
                await _write(response, _event(next(iter(looks)), orjson.dumps({"revision": ""})))
        except (TimeoutError, ConnectionError):  # a client that does not read, or is gone
            if request.transport is not None:
                request.transport.abort()
        except asyncio.CancelledError:
            if not self._is_ending or not response.prepared:
                raise
            task.uncancel()
        finally:
            self._open.discard(task)
        return response

    async def _follow(
        self,
        request: web.Request,
        response: web.StreamResponse,
        looks: Mapping[str, Callable[[], Awaitable[tuple[Any, bool]]]],
    ) -> None:
        loop = asyncio.get_running_loop()
        known: dict[str, bytes] = {}
        due = dict.fromkeys(looks, 0.0)
        sent_at = loop.time()
        await _write(response, b"retry: 3000\n\n")
        while request.transport is not None:  # else the client is gone
            for name, look in looks.items():
                if loop.time() < due[name]:
                    continue
                document, is_growing = await look()
                due[name] = loop.time() + (_WHILE_READING_S if is_growing else REFRESH_S)
                text = orjson.dumps(document)
                if known.get(name) != text:
                    known[name] = text
                    sent_at = loop.time()
                    await _write(response, _event(name, text))
            if loop.time() - sent_at >= PING_S:
                sent_at = loop.time()
                await _write(response, b": still here\n\n")
            await asyncio.sleep(max(0.0, min(due.values()) - loop.time()))


def _event(name: str, text: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + text + b"\n\n"


async def _write(response: web.StreamResponse, content: bytes) -> None:
    async with asyncio.timeout(WRITE_S):
        await response.write(content)
