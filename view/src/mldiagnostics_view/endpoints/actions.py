"""The requests that change something: captures, and servers of XProf."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.failures import failure_of

from mldiagnostics_view.captures.creation import NOT_CREATED
from mldiagnostics_view.documents import capture_document
from mldiagnostics_view.endpoints.bodies import json_response
from mldiagnostics_view.endpoints.capture_order import capture_order, ranks_to_capture
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import READ_RUN_S, XPROF_WAIT_S
from mldiagnostics_view.xprof.opening import SessionAbsent, SessionAddress

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from mldiagnostics_view.sources.catalog import Catalog
    from mldiagnostics_view.sources.source import ListedSource
    from mldiagnostics_view.xprof.opening import SessionOpener


class Actions:
    """Handlers of the orders of a viewer.

    Args:
        seen: Returns the catalog as the viewer of a request sees it.
        xprof: Opens sessions in XProf; None if neither the viewer's machine nor the deployment can.
    """

    def __init__(self, seen: Callable[[web.Request], Catalog], xprof: SessionOpener | None) -> None:
        self._seen, self._xprof = seen, xprof

    def add_to(self, app: web.Application, run: str) -> None:
        """Add the addresses below that of a run."""
        app.router.add_post(f"{run}/captures", self.capture)
        app.router.add_get(f"{run}/captures/{{name}}", self.capture_status)
        app.router.add_post(f"{run}/captures/{{name}}/cancel", self.cancel)
        app.router.add_post(f"{run}/sessions/{{session}}/xprof", self.open_xprof)

    @property
    def opens_xprof(self) -> bool:
        """Return whether sessions can be opened from the page."""
        return self._xprof is not None

    async def capture(self, request: web.Request) -> web.Response:
        """Create the object of a capture; a failure says whether it may have been created."""
        order = capture_order(await request.read())
        source, key = self._run(request)
        try:
            async with asyncio.timeout(READ_RUN_S):
                run = await source.detail(key)
            status = await source.captures.create(
                key, order_id=order.order_id, ranks=ranks_to_capture(order, run), milliseconds=order.milliseconds
            )
        except TimeoutError:
            problem = f"The run could not be read within {READ_RUN_S:g} s"
            raise RequestProblem(HTTPStatus.BAD_GATEWAY, f"{problem}. {NOT_CREATED}; try again.") from None
        except ClusterError as error:  # of a review of the viewer's rights
            problem = str(failure_of(error, cluster="the cluster"))
            raise RequestProblem(HTTPStatus.BAD_GATEWAY, f"{problem}. {NOT_CREATED}.") from error
        response = await json_response(request, lambda: capture_document(status))
        response.set_status(HTTPStatus.CREATED)
        return response

    async def capture_status(self, request: web.Request) -> web.Response:
        """Return the progress of a capture."""
        source, key = self._run(request)
        status = await source.captures.status(key, request.match_info["name"])
        return await json_response(request, lambda: capture_document(status))

    async def cancel(self, request: web.Request) -> web.Response:
        """Stop a capture."""
        source, key = self._run(request)
        status = await source.captures.cancel(key, request.match_info["name"])
        return await json_response(request, lambda: capture_document(status))

    async def open_xprof(self, request: web.Request) -> web.Response:
        """Return the address of a session in XProf.

        It is null while XProf starts or the session is copied: the page sends the request again.
        """
        if self._xprof is None:
            raise RequestProblem(
                HTTPStatus.CONFLICT, "This server opens no sessions in XProf; use `mldiag xprof create`."
            )
        source, key = self._run(request)
        session = request.match_info["session"]
        directory = await source.directory(key)
        if not directory:
            raise SessionAbsent(session)
        address = SessionAddress(request.match_info["source"], key, session)
        url = await self._xprof.page(address, directory, wait_s=XPROF_WAIT_S)
        return await json_response(request, lambda: {"url": url})

    def _run(self, request: web.Request) -> tuple[ListedSource, str]:
        return self._seen(request).source(request.match_info["source"]), request.match_info["key"]
