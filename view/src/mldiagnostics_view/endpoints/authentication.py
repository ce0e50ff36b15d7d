"""The viewer of a request, as an authenticating proxy names it."""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, cast

from aiohttp import web
from mldiagnostics.errors import ConfigurationError

from mldiagnostics_view.authorization import ANYBODY, Viewer
from mldiagnostics_view.endpoints.problems import problem_response
from mldiagnostics_view.limits import MAX_GROUPS, SECRET_AGE_S

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from multidict import CIMultiDictProxy

    from mldiagnostics_view.authorization import Access, SubjectReviews

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


_ACCESS: Final = web.RequestKey("access", object)
_SYSTEM: Final = "system:"
_AUTHENTICATED: Final = "system:authenticated"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyHeaders:
    """Headers that the proxy sets; it removes those of the browser."""

    user: str
    groups: str
    """Empty: no groups."""
    secret: str
    secret_file: Path
    """One secret per line; during a rotation two."""


def access_of(request: web.Request) -> Access:
    """Return the access of the viewer of a request.

    Without a proxy, everybody who reaches the server may see all.
    """
    return cast("Access", request.get(_ACCESS, ANYBODY))


def viewer_named(headers: CIMultiDictProxy[str], names: ProxyHeaders) -> Viewer | None:
    """Return the viewer that headers name, in words of the API server.

    None without a valid one.

    Only the API server and its authenticators give names that begin with `system:`.
    """
    users = headers.getall(names.user, [])
    lines = headers.getall(names.groups, []) if names.groups else []
    groups = [group.strip() for line in lines for group in line.split(",") if group.strip()]
    if len(users) != 1 or not users[0].strip() or users[0].startswith(_SYSTEM) or len(groups) > MAX_GROUPS:
        return None
    own = sorted({group for group in groups if not group.startswith(_SYSTEM)})
    return Viewer(users[0].strip(), (*own, _AUTHENTICATED))


class Authentication:
    """Gives each request the access of its viewer.

    Requests that do not come from the proxy are rejected.

    Args:
        headers: Names of the headers.
        reviews: Decides about viewers.

    Raises:
        ConfigurationError: The secret cannot be read.
    """

    def __init__(self, headers: ProxyHeaders, reviews: SubjectReviews) -> None:
        self._headers, self._reviews = headers, reviews
        self._secrets = _secrets(headers.secret_file)
        self._read_at = asyncio.get_running_loop().time()

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request of the proxy for its viewer."""
        given = request.headers.getall(self._headers.secret, [])
        if len(given) != 1 or not await self._is_secret(given[0]):
            return problem_response(HTTPStatus.UNAUTHORIZED, "Use the address of the proxy, which logs you in.")
        viewer = viewer_named(request.headers, self._headers)
        if viewer is None:
            return problem_response(HTTPStatus.UNAUTHORIZED, "The proxy names no user. Log in again.")
        request[_ACCESS] = self._reviews.of(viewer)
        return await handler(request)

    async def _is_secret(self, given: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._read_at >= SECRET_AGE_S:
            self._read_at = now
            self._secrets = await asyncio.to_thread(_secrets, self._headers.secret_file)
        matches = [hmac.compare_digest(given.encode(), secret) for secret in self._secrets]
        return any(matches)


def _secrets(file: Path) -> list[bytes]:
    try:
        secrets = [line.strip() for line in file.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be read: {error.strerror}; mount the Secret of the proxy") from error
    if not secrets:
        raise ConfigurationError(f"{file}: is empty; put the secret into it that the proxy sends")
    return secrets
