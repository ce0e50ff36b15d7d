"""XProf beside the server of the view, for all viewers of a deployment."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from weakref import WeakValueDictionary

import aiohttp
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.layout import xprof_page
from yarl import URL

from mldiagnostics_view.limits import MAX_XPROF_REQUESTS, XPROF_REQUEST_S
from mldiagnostics_view.xprof.session_copies import SessionCopies

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from mldiagnostics_view.xprof.opening import SessionAddress


_CONNECT_S: Final = 5.0
_REMEDY: Final = "try again in a moment, and see the log of the container xprof and view.xprof.resources"


class XprofHost(NamedTuple):
    """XProf in another container of the pod."""

    url: str
    cache: Path
    """Directory that both containers have at the same path."""
    cache_bytes: int


class XprofUnreachable(MLDiagnosticsError):
    """XProf does not answer."""


class HostedXprof:
    """Copies sessions for XProf, and passes requests on.

    One XProf without a log directory shows all sessions: each request names the copy that it may read.

    Args:
        host: Address of XProf, and directory of the copies.
    """

    def __init__(self, host: XprofHost) -> None:
        self._url = URL(host.url)
        self._turns = asyncio.Semaphore(MAX_XPROF_REQUESTS)
        self._turns_of = WeakValueDictionary[str, asyncio.Semaphore]()
        """Turns of each tenant; they exist while a request has or awaits one."""
        self._client: aiohttp.ClientSession | None = None
        self.copies: Final = SessionCopies(host.cache, host.cache_bytes)

    async def page(self, address: SessionAddress, directory: str, *, wait_s: float) -> str | None:
        """See `SessionOpener.page`: a path of the view, which can be shared."""
        copy = await self.copies.ensure(directory, address.session, wait_s=wait_s)
        return None if copy is None else address.path + xprof_page(address.session)

    @asynccontextmanager
    async def response(
        self, target: str, headers: Mapping[str, str], *, tenant: str
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request in turn, and yield the response as XProf encodes it.

        Half of the turns are left for other tenants.

        Args:
            target: Path and query.
            tenant: Namespace of the run.
            headers: Headers of the request.

        Raises:
            XprofUnreachable: XProf does not answer, or not in time.
        """
        if self._client is None:
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S)
            self._client = aiohttp.ClientSession(
                timeout=timeout, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        url = self._url.join(URL(target, encoded=True))
        try:
            async with (
                asyncio.timeout(XPROF_REQUEST_S),
                self._turns_of.setdefault(tenant, asyncio.Semaphore(MAX_XPROF_REQUESTS // 2)),
                self._turns,
                self._client.get(url, headers=headers, allow_redirects=False) as response,
            ):
                yield response
        except TimeoutError:
            raise XprofUnreachable(f"XProf: no answer within {XPROF_REQUEST_S:g} s; {_REMEDY}") from None
        except aiohttp.ClientError as error:
            raise XprofUnreachable(f"XProf: {error}; {_REMEDY}") from error

    async def aclose(self) -> None:
        """Close the connections to XProf."""
        await self.copies.aclose()
        if self._client is not None:
            await self._client.close()
