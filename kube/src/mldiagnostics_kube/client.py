"""A small client of the API server with a timeout on every call.

It replaces the `kubernetes` package, whose import costs each process 30 MB.
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
"""How long one watch lasts. A quiet watch sends nothing, not even bookmarks, so only its end shows a dead stream."""
PAGE: Final = 500
METADATA_PAGE: Final = 100
PARALLEL_CALLS: Final = 64
_MAX_LINE_BYTES: Final = 8 * 2**20


class ApiClient:
    """A client of one API server; it reads and writes objects as JSON by URL path.

    Build paths with `apiserver.path_to`. Every method except `aclose` ends within its timeout, and raises only
    `apiserver.ClusterError` or a subclass: `NotFound`, `Conflict`, `RequestRejected`, `Unavailable` (try again).

    Example:
        client = await ApiClient.connect()
        pod = await client.get(path_to("", "v1", "pods", namespace="ml", name="trainer-0"))
        await client.aclose()
    """

    def __init__(self, access: Credentials) -> None:
        self.access: Final = access
        tls = access.tls() or True
        self._calls = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=PARALLEL_CALLS))
        self._watches = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0))

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect with the credentials of this process (see `credentials.find`).

        Raises:
            ConfigurationError: No usable credentials were found.
        """
        access = await credentials.find(environ)
        try:
            return cls(access)
        except ValueError as fault:
            raise ConfigurationError(f"API server {access.server!r}: cannot connect: {fault}") from fault

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
        """Send one request and return the object in the response.

        Args:
            method: HTTP method.
            path: URL path, as `apiserver.path_to` builds it.
            query: Query parameters, in order.
            body: JSON value to send; None sends no body.
            content_type: Type of the body; patches need `MERGE_PATCH` or `JSON_PATCH`.
            accept: Type of the response.
            timeout_s: Limit in seconds for the whole exchange.
        """
        headers = {"Accept": accept, "Content-Type": content_type}
        data: dict[str, Any] = {} if body is None else {"data": orjson.dumps(body)}
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            exchange = self._exchange(method, path, params=query, headers=headers, timeout=timeout, **data)
            status, raw = await _run_to_completion(exchange)
        except (aiohttp.ClientError, OSError) as failure:  # TimeoutError is an OSError
            cause = str(failure) or type(failure).__name__
            raise Unavailable(
                f"{method} {path}: the API server did not respond in {timeout_s:g} s: {cause}"
            ) from failure
        if status >= 400:
            raise error_of(method, path, status, raw)
        return _parse(method, path, raw)

    async def get(self, path: str, *, metadata_only: bool = False, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object, or only its metadata."""
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
        """List the objects of a collection and return `keep(object)` of each.

        Args:
            path: Path of the collection.
            keep: Takes an object and returns the part to keep; the rest is freed page by page.
            labels: Label selector; empty selects all.
            fields: Field selector; empty selects all.
            metadata_only: Read only the metadata of the objects.
            page: Objects per request. Use fewer for large objects, because a page is parsed as a whole.
            timeout_s: Limit in seconds for each page.
        """
        query = [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]
        accept = metadata_only_type("PartialObjectMetadataList") if metadata_only else JSON
        pages = self._pages(path, [*query, ("limit", str(page))], accept, timeout_s)
        return [keep(item) async for items, _ in pages for item in items]

    def metadata_pages(self, path: str) -> AsyncIterator[tuple[list[Json], str]]:
        """Yield the metadata of all objects page by page, with the list's resourceVersion."""
        accept = metadata_only_type("PartialObjectMetadataList")
        return self._pages(path, [("limit", str(METADATA_PAGE))], accept, CALL_TIMEOUT_S)

    async def create(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Create an object; raise Conflict if the name is taken."""
        return await self.request("POST", path, body=body, timeout_s=timeout_s)

    async def replace(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Replace an object; raise Conflict unless its resourceVersion is the newest."""
        return await self.request("PUT", path, body=body, timeout_s=timeout_s)

    async def patch(self, path: str, body: Json | Sequence[Json], *, content_type: str = MERGE_PATCH) -> Json:
        """Patch an object; the default is a JSON merge patch."""
        return await self.request("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete the object with this uid; raise Conflict if the name has another uid."""
        await self.request("DELETE", path, body={"preconditions": {"uid": uid}})

    async def watch_metadata(self, path: str, resource_version: str, *, for_s: int = WATCH_S) -> AsyncIterator[Json]:
        """Yield the changes since `resource_version` as events of PartialObjectMetadata.

        Bookmarks and error events are yielded too. The API server ends the watch after `for_s` seconds.
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
                    yield _parse("GET", path, line)
        except (aiohttp.ClientError, OSError) as failure:
            cause = str(failure) or type(failure).__name__
            raise Unavailable(f"watch {path}: the connection failed: {cause}") from failure

    async def _pages(
        self, path: str, query: list[tuple[str, str]], accept: str, timeout_s: float
    ) -> AsyncIterator[tuple[list[Json], str]]:
        token = ""
        while True:
            page_query = [*query, ("continue", token)] if token else query
            page = await self.request("GET", path, query=page_query, accept=accept, timeout_s=timeout_s)
            items = page.get("items") or []  # an empty list of metadata is null
            yield items, page["metadata"].get("resourceVersion", "")
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


async def _run_to_completion(work: Coroutine[Any, Any, T]) -> T:
    """Await the work; if the caller is cancelled, finish the work first.

    So two writes of one caller never run at once, and no connection is dropped during its TLS handshake, which would
    leak it (CPython 3.11 forgets the transport).
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
    """Split a stream into lines; aiohttp's own reader rejects very long lines."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        if b"\n" in chunk:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                yield bytes(line)
        elif len(rest) > _MAX_LINE_BYTES:
            raise Unavailable(f"watch: an event is longer than {_MAX_LINE_BYTES} bytes")


def _parse(method: str, path: str, raw: bytes) -> Json:
    try:
        response = orjson.loads(raw)
    except ValueError as fault:
        raise Unavailable(
            f"{method} {path}: the response is not JSON, so not from an API server: {raw[:80]!r}"
        ) from fault
    if not isinstance(response, dict):
        raise Unavailable(f"{method} {path}: the response is not an object, so not from an API server: {raw[:80]!r}")
    return response
