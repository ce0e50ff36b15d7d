"""Checks before each request, and headers of each response."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from aiohttp import web

from mldiagnostics_view.endpoints.problems import problem_response
from mldiagnostics_view.limits import MAX_BODY_BYTES, MAX_QUERY_BYTES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OWN_HEADERS: Final = web.RequestKey("own headers", Mapping)
"""Headers of a response that is not a page of the view, instead of those above."""

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def host_name(header: str) -> str:
    """Return the host of a Host header, without its port, in lower case.

    >>> host_name("LocalHost:8425"), host_name("[::1]:8425"), host_name("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0].lower()
    return header.partition(":")[0].lower()


def _rejected_post(request: web.Request) -> tuple[HTTPStatus, str] | None:
    """Return why a request that changes something is rejected.

    None if a page of this server sends it.

    A browser adds `Sec-Fetch-Site`, or where it does not, `Origin` to every POST, and pages cannot change them. A form
    of another site cannot send JSON, and a script cannot without a preflight request, which is rejected.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin", "")
    is_host = origin.partition("://")[2].lower() == request.headers.get("Host", "").lower()
    if not (is_host if site is None else site == "same-origin"):
        return HTTPStatus.FORBIDDEN, "Only the page of this server may do this."
    if request.content_type != "application/json":
        return HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "The body must be application/json."
    if (request.content_length or 0) > MAX_BODY_BYTES:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body exceeds {MAX_BODY_BYTES} bytes."
    return None


class Guard:
    """Rejects requests that no page of this server sends.

    A foreign site that a browser shows can resolve its own name to 127.0.0.1 (DNS rebinding): the Host header then has
    that name. It can also send requests without reading the responses: browsers mark these as `cross-site`.

    Args:
        host: Address on which the server listens.
        names: Further names of the server.
    """

    def __init__(self, host: str, names: Iterable[str]) -> None:
        self._names = frozenset({*_LOOPBACK, host.lower(), *(name.lower() for name in names)})

    @property
    def names(self) -> tuple[str, ...]:
        """The names in URLs of browsers, without addresses of IPv6."""
        return tuple(sorted(name for name in self._names if name and ":" not in name))

    @staticmethod
    async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
        """Add the headers of each response; a signal of the application."""
        response.headers.update({**HEADERS, **request.get(OWN_HEADERS, {})})
        response.headers.setdefault("Cache-Control", "private, no-cache")
        response.headers.popall("Server", None)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request that passes the checks."""
        if host_name(request.headers.get("Host", "")) not in self._names:
            return problem_response(
                HTTPStatus.MISDIRECTED_REQUEST,
                "The host name of this address is not allowed; start the server with --allowed-host and the name.",
            )
        is_page = request.headers.get("Sec-Fetch-Mode") == "navigate"
        if request.headers.get("Sec-Fetch-Site") == "cross-site" and not is_page:
            return problem_response(HTTPStatus.FORBIDDEN, "Pages of other sites may not read this server.")
        if request.method == "POST":
            if rejected := _rejected_post(request):
                return problem_response(*rejected)
        elif request.method not in {"GET", "HEAD"}:
            return problem_response(HTTPStatus.METHOD_NOT_ALLOWED, "Use GET or POST.")
        if len(request.raw_path) > MAX_QUERY_BYTES:
            return problem_response(HTTPStatus.REQUEST_URI_TOO_LONG, f"The address exceeds {MAX_QUERY_BYTES} bytes.")
        return await handler(request)
