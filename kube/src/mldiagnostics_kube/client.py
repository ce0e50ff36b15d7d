"""The API client: JSON in and out, a deadline on every call, watches that end when they fall silent.

Without the Kubernetes client, which costs each process 30 MB.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import aiohttp
import orjson
from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube import credentials
from mldiagnostics_kube.apiserver import JSON, MERGE_PATCH, Unavailable, error_of, metadata_only_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from mldiagnostics_kube.credentials import Credentials

    Json = dict[str, Any]
    Query = Sequence[tuple[str, str]]

T = TypeVar("T")

CALL_TIMEOUT_S: Final = 10.0
WATCH_S: Final = 120
"""A kind without changes since the API server started sends nothing, not even a bookmark: a dead stream shows only by
not ending."""
PAGE: Final = 500
METADATA_PAGE: Final = 100
PARALLEL_CALLS: Final = 64
_MAX_LINE_BYTES: Final = 8 * 2**20


class ApiClient:
    """Verbs on paths of the API server.

    Every method but `aclose` raises what `mldiagnostics_kube.apiserver` names, and nothing else, within its timeout.
    """

    def __init__(self, access: Credentials) -> None:
        self.access: Final = access
        tls = access.tls() or True
        self._calls = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=PARALLEL_CALLS))
        self._watches = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0))

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect by what `credentials.find` finds. Raises ConfigurationError if there is no way to the API server."""
        access = await credentials.find(environ)
        try:
            return cls(access)
        except ValueError as fault:
            raise ConfigurationError(f"There is no way to the API server {access.server}: {fault}") from fault

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.close()
        await self._watches.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query = (),
        body: Any = None,
        content_type: str = JSON,
        accept: str = JSON,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Json:
        """Send one request and return the object of the answer."""
        headers = {"Accept": accept, "Content-Type": content_type}
        sent: dict[str, Any] = {} if body is None else {"data": orjson.dumps(body)}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            exchange = self._exchange(method, path, params=query, headers=headers, timeout=timeout, **sent)
            status, raw = await _to_its_end(exchange)
        except (aiohttp.ClientError, OSError) as failure:  # TimeoutError is an OSError
            what = str(failure) or type(failure).__name__
            raise Unavailable(
                f"The API server did not answer {method} {path} within {timeout_s:g} s: {what}"
            ) from failure
        if status >= 400:
            raise error_of(method, path, status, raw)
        return _parsed(method, path, raw)

    async def get(self, path: str, *, metadata_only: bool = False, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object, or its metadata without the rest."""
        accept = metadata_only_type("PartialObjectMetadata") if metadata_only else JSON
        return await self.request("GET", path, accept=accept, timeout_s=timeout_s)

    async def items(
        self,
        path: str,
        keep: Callable[[Json], T],
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        page: int = PAGE,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> list[T]:
        """Read all objects that match, `keep` of each: pages are dropped as they are read. The timeout is per page.

        `page` objects at a time: fewer where they are large, because a page is parsed at once.
        """
        query = [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]
        accept = metadata_only_type("PartialObjectMetadataList") if metadata_only else JSON
        pages = self._pages(path, [*query, ("limit", str(page))], accept, timeout_s)
        return [keep(item) async for items, _ in pages for item in items]

    def metadata_pages(self, path: str) -> AsyncIterator[tuple[list[Json], str]]:
        """Read the metadata of all objects page by page, each with the resourceVersion of the list."""
        accept = metadata_only_type("PartialObjectMetadataList")
        return self._pages(path, [("limit", str(METADATA_PAGE))], accept, CALL_TIMEOUT_S)

    async def create(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Make an object; Conflict if the name is taken."""
        return await self.request("POST", path, body=body, timeout_s=timeout_s)

    async def replace(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Write an object whole; Conflict unless its resourceVersion is the newest."""
        return await self.request("PUT", path, body=body, timeout_s=timeout_s)

    async def patch(self, path: str, body: Json | Sequence[Json], *, content_type: str = MERGE_PATCH) -> Json:
        """Change parts of an object."""
        return await self.request("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete the object if it is still the one with this uid; Conflict if it is another."""
        await self.request("DELETE", path, body={"preconditions": {"uid": uid}})

    async def watch_metadata(self, path: str, resource_version: str, *, for_s: int = WATCH_S) -> AsyncIterator[Json]:
        """Follow the changes since a list: events of PartialObjectMetadata, bookmarks and errors included.

        Ends when the API server ends it, which it is asked to do after `for_s`.
        """
        query = [
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(for_s)),
        ]
        headers = {"Accept": metadata_only_type("PartialObjectMetadata"), **await self._authorization()}
        timeout = aiohttp.ClientTimeout(total=for_s + CALL_TIMEOUT_S, connect=CALL_TIMEOUT_S)
        try:
            async with self._watches.get(
                self.access.server + path, params=query, headers=headers, timeout=timeout
            ) as response:
                if response.status >= 400:
                    raise error_of("GET", path, response.status, await response.read())
                async for line in _lines(response.content):
                    yield _parsed("GET", path, line)
        except (aiohttp.ClientError, OSError) as broken:
            what = str(broken) or type(broken).__name__
            raise Unavailable(f"The watch of {path} broke: {what}") from broken

    async def _pages(
        self, path: str, query: list[tuple[str, str]], accept: str, timeout_s: float
    ) -> AsyncIterator[tuple[list[Json], str]]:
        token = ""
        while True:
            following = [*query, ("continue", token)] if token else query
            page = await self.request("GET", path, query=following, accept=accept, timeout_s=timeout_s)
            yield (
                page.get("items") or [],
                page["metadata"].get("resourceVersion", ""),
            )  # an empty list of metadata is null
            token = page["metadata"].get("continue", "")
            if not token:
                return

    async def _exchange(self, method: str, path: str, *, headers: dict[str, str], **more: Any) -> tuple[int, bytes]:
        headers |= await self._authorization()
        async with self._calls.request(method, self.access.server + path, headers=headers, **more) as response:
            return response.status, await response.read()

    async def _authorization(self) -> dict[str, str]:
        token = await self.access.token()
        return {"Authorization": f"Bearer {token}"} if token else {}


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """Await the work; a cancelled caller is let go when it is over.

    So writes of one caller never overtake each other, and no connection is given up half made, which would leak it
    (CPython 3.11 forgets a transport that is cancelled before its TLS handshake).
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
        raise


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Cut a stream into lines; aiohttp's own reader refuses lines as long as metadata can be."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" in chunk:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield bytes(line)
        elif len(rest) > _MAX_LINE_BYTES:
            raise Unavailable(f"An event of more than {_MAX_LINE_BYTES} bytes is none of metadata")


def _parsed(method: str, path: str, raw: bytes) -> Json:
    try:
        answer = orjson.loads(raw)
    except ValueError as fault:
        raise Unavailable(f"What answers {method} {path} is no API server: {raw[:80]!r} is no JSON") from fault
    if not isinstance(answer, dict):
        raise Unavailable(f"What answers {method} {path} is no API server: {raw[:80]!r} is no object")
    return answer
