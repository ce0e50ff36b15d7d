"""Sessions in XProf behind a deployed server, with the rights of each viewer."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics.layout import xprof_page

from mldiagnostics_view.endpoints.guard import OWN_HEADERS
from mldiagnostics_view.endpoints.problems import RequestProblem, problem_response
from mldiagnostics_view.limits import WRITE_S, XPROF_WAIT_S
from mldiagnostics_view.xprof.opening import SessionAddress
from mldiagnostics_view.xprof.page_requests import RequestKind, page_headers, page_request

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from aiohttp import ClientResponse

    from mldiagnostics_view.sources.catalog import Catalog
    from mldiagnostics_view.xprof.hosted import HostedXprof


_REQUEST_HEADERS: Final = ("Accept", "Accept-Encoding")
_RESPONSE_HEADERS: Final = ("Content-Type", "Content-Encoding", "Content-Length", "Content-Disposition")
_CHUNK_BYTES: Final = 64 * 1024
_POLICY: Final = "Content-Security-Policy"


class XprofPages:
    """Handlers of the requests of XProf's page.

    Args:
        seen: Returns the catalog as the viewer of a request sees it.
        xprof: XProf beside this server.
        names: Names of this server in the URLs of browsers.
    """

    def __init__(self, seen: Callable[[web.Request], Catalog], xprof: HostedXprof, names: Sequence[str]) -> None:
        self._seen, self._xprof, self._names = seen, xprof, names

    def add_to(self, app: web.Application) -> None:
        """Add the addresses."""
        app.router.add_get("/xprof/{source}/{key}/{session}/{path:.*}", self.show, allow_head=False)

    async def show(self, request: web.Request) -> web.StreamResponse:
        """Answer a request of XProf's page, or lead to it."""
        source, key, session, path = (request.match_info[name] for name in ("source", "key", "session", "path"))
        address = SessionAddress(source, key, session)
        if not path:
            return web.Response(status=HTTPStatus.FOUND, headers={"Location": address.path + xprof_page(session)})
        wanted = page_request(path, list(request.query.items()), session)
        if wanted is None:
            raise RequestProblem(HTTPStatus.NOT_FOUND, f"This address shows only the session {session[:100]}.")
        seen, copied = self._seen(request).source(source), ""
        if wanted.kind is not RequestKind.FILE:
            directory = await seen.directory(key)
            if not directory:
                raise RequestProblem(HTTPStatus.CONFLICT, "The files of this run cannot be read from here.")
            copy = await self._xprof.copies.ensure(directory, session, wait_s=XPROF_WAIT_S)
            if copy is None:
                return _still_copying(wanted.kind)
            copied = str(copy)
        headers = {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
        async with self._xprof.response(wanted.target(copied), headers, tenant=seen.namespace(key)) as response:
            return await self._pass_on(request, response, address)

    async def _pass_on(
        self, request: web.Request, response: ClientResponse, address: SessionAddress
    ) -> web.StreamResponse:
        headers = {name: response.headers[name] for name in _RESPONSE_HEADERS if name in response.headers}
        request[OWN_HEADERS] = page_headers(response.headers.get(_POLICY, ""), self._names, address.path)
        passed = web.StreamResponse(status=response.status, headers=headers)
        is_whole = False
        try:
            await passed.prepare(request)
            async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                async with asyncio.timeout(WRITE_S):
                    await passed.write(chunk)
            await passed.write_eof()
            is_whole = True
        except (TimeoutError, ConnectionError):  # a browser that does not read, or is gone
            pass
        finally:  # XProf may have ended in the middle too: the browser must not take a part for the whole
            if not is_whole and request.transport is not None:
                request.transport.abort()
        return passed


def _still_copying(kind: RequestKind) -> web.Response:
    """Return a page that asks again, or a problem for its scripts."""
    if kind is RequestKind.DATA:
        response = problem_response(HTTPStatus.SERVICE_UNAVAILABLE, "The session is being copied; try again.")
        response.headers["Retry-After"] = "1"
        return response
    text = "<!doctype html><title>XProf</title><p>The session is being copied for XProf …"
    return web.Response(text=text, content_type="text/html", headers={"Refresh": "1"})
