"""A small client of the API server with a timeout on every call.

It replaces the `kubernetes` package, whose import costs each process 30 MB.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import aiohttp
import orjson
from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube import credentials
from mldiagnostics_kube.apiserver import (
    JSON,
    MERGE_PATCH,
    METADATA_LIST,
    TABLE,
    ResponseTooLarge,
    Unavailable,
    error_of,
    metadata_only_type,
)
from mldiagnostics_kube.failures import connection_problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from mldiagnostics_kube.credentials import Credentials

    Json = dict[str, Any]
    Query = Sequence[tuple[str, str]]

T = TypeVar("T")

CALL_TIMEOUT_S: Final = 10.0
WATCH_S: Final = 120
"""How long one watch lasts. A quiet watch sends nothing, not even bookmarks, so only its end shows a dead stream."""
FIRST_PAGE: Final = 50
PAGE: Final = 500
PAGE_BYTES: Final = 2 * 2**20
"""Largest page of a list: a larger one is dropped while it arrives and read again with fewer objects."""
MAX_RESPONSE_BYTES: Final = 10 * 2**20
"""Largest response: above one object of 1.5 MiB, etcd's limit, of characters that JSON writes with six bytes each."""
PARALLEL_CALLS: Final = 64
_MAX_LINE_BYTES: Final = 8 * 2**20
_ORJSON_BYTES: Final = 2**20
"""Longer responses are parsed by the standard library: orjson allocates 12 times the length, measured."""
_UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""A few compressed kilobytes may expand to a page of many megabytes at once, before it can be dropped."""


class ApiClient:
    """A client of one API server; it reads and writes objects as JSON by URL path.

    Build paths with `apiserver.path_to`. Every method except `aclose` ends within its timeout, and raises only
    `apiserver.ClusterError` or a subclass: `NotFound`, `Conflict`, `RequestRejected`, `Unavailable` (try again),
    `ResponseTooLarge`.

    Example:
        client = await ApiClient.connect()
        pod = await client.get(path_to("", "v1", "pods", namespace="ml", name="trainer-0"))
        await client.aclose()
    """

    def __init__(self, access: Credentials) -> None:
        self.access: Final = access
        tls = access.tls() or True
        self._calls = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=PARALLEL_CALLS), headers=_UNCOMPRESSED, proxy=access.proxy
        )
        self._streams = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls, limit=0), proxy=access.proxy)

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect with the credentials of this process (see `credentials.find`).

        Raises:
            ConfigurationError: No usable credentials were found.
        """
        return cls.of(await credentials.find(environ))

    @classmethod
    def of(cls, access: Credentials) -> Self:
        """Return a client with credentials. Raises `ConfigurationError` if invalid."""
        try:
            return cls(access)
        except ValueError as fault:
            raise ConfigurationError(f"API server {access.server!r}: cannot connect: {fault}") from fault

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.close()
        await self._streams.close()

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
        data: dict[str, Any] = {} if body is None else {"data": orjson.dumps(body)}
        headers = {"Accept": accept, "Content-Type": content_type}
        return _parse(method, path, await self._send(method, path, timeout_s, params=query, headers=headers, **data))

    async def get(self, path: str, *, metadata_only: bool = False, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object, or only its metadata."""
        accept = metadata_only_type("PartialObjectMetadata") if metadata_only else JSON
        return await self.request("GET", path, accept=accept, timeout_s=timeout_s)

    async def items(
        self,
        path: str,
        keep: Callable[[Json], T | None],
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        page: int = PAGE,
        most: int | None = None,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> list[T]:
        """List the objects of a collection and return `keep(object)` of each.

        Args:
            path: Path of the collection.
            keep: Takes an object and returns the part to keep, or None; the rest is freed page by page.
            labels: Label selector; empty selects all.
            fields: Field selector; empty selects all.
            metadata_only: Read only the metadata of the objects.
            page: Most objects per request; pages of large objects are smaller.
            most: Stop after this number of kept objects; None keeps all.
            timeout_s: Limit in seconds for each page.
        """
        query = _selectors(labels, fields)
        kept: list[T] = []
        accept = METADATA_LIST if metadata_only else JSON
        async for items, _ in self._pages(path, query, accept=accept, page=page, timeout_s=timeout_s):
            kept += [part for item in items if (part := keep(item)) is not None]
            if most is not None and len(kept) >= most:
                return kept[:most]
        return kept

    async def names(self, path: str, *, most: int) -> list[str]:
        """List the names of the first `most` objects, without the objects themselves."""
        query = [("includeObject", "None")]
        names: list[str] = []
        async for rows, _ in self._pages(path, query, accept=TABLE, page=PAGE, timeout_s=CALL_TIMEOUT_S):
            names += [str(row["cells"][0]) for row in rows]  # the first column of every kind is the name
            if len(names) >= most:
                break
        return names[:most]

    def pages(
        self, path: str, *, labels: str = "", fields: str = "", metadata_only: bool = False
    ) -> AsyncIterator[tuple[list[Json], str]]:
        """Yield all objects page by page, with the list's resourceVersion.

        A page is empty again after its turn in the loop.
        """
        accept = METADATA_LIST if metadata_only else JSON
        return self._pages(path, _selectors(labels, fields), accept=accept, page=PAGE, timeout_s=CALL_TIMEOUT_S)

    def metadata_pages(self, path: str) -> AsyncIterator[tuple[list[Json], str]]:
        """Yield the metadata of all objects, as `pages` does."""
        return self.pages(path, metadata_only=True)

    async def version(self, path: str) -> str:
        """Return the resourceVersion of a collection for `watch_metadata`."""
        pages = self._pages(path, [], accept=METADATA_LIST, page=1, timeout_s=CALL_TIMEOUT_S)
        return (await anext(pages))[1]

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

    def watch_metadata(self, path: str, resource_version: str, *, for_s: int = WATCH_S) -> AsyncGenerator[Json]:
        """Yield the changes as `watch` does, as PartialObjectMetadata."""
        return self.watch(path, resource_version, metadata_only=True, for_s=for_s)

    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        for_s: int = WATCH_S,
    ) -> AsyncGenerator[Json]:
        """Yield the changes since `resource_version` as events.

        Bookmarks and error events are yielded too. The API server ends the watch after `for_s` seconds.
        """
        accept = metadata_only_type("PartialObjectMetadata") if metadata_only else JSON
        query = [
            *_selectors(labels, fields),
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(for_s)),
        ]
        headers = {"Accept": accept, **await self._authorization()}
        timeout = aiohttp.ClientTimeout(total=for_s + CALL_TIMEOUT_S, connect=CALL_TIMEOUT_S)
        try:
            opening = self._open_watch(path, params=query, headers=headers, timeout=timeout)
            async with await _run_to_completion(opening, discard=aiohttp.ClientResponse.close) as response:
                if response.status >= 400:
                    raise error_of("GET", path, response.status, await response.read())
                async for line in _lines(response.content):
                    yield _parse("GET", path, line)
        except (aiohttp.ClientError, OSError) as failure:
            raise Unavailable(f"watch {path}: the connection failed: {connection_problem(failure)}") from failure

    async def open_socket(self, path: str, *, protocol: str, query: Query = ()) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, such as that of the subresource `portforward` of a pod.

        Args:
            path: URL path, as `apiserver.path_to` builds it.
            protocol: Subprotocol, such as `v4.channel.k8s.io`.
            query: Query parameters, in order.

        Raises:
            ClusterError: The socket was not opened; after a refusal with its status.
        """
        try:
            async with asyncio.timeout(CALL_TIMEOUT_S):
                return await self._streams.ws_connect(
                    self.access.server + path,
                    params=query,
                    protocols=(protocol,),
                    headers=await self._authorization(),
                    server_hostname=self.access.server_name,
                    autoclose=True,
                    max_msg_size=0,
                )
        except aiohttp.WSServerHandshakeError as refusal:
            raise error_of("GET", path, refusal.status, refusal.message.encode()) from refusal
        except (aiohttp.ClientError, OSError) as failure:
            raise Unavailable(f"GET {path}: the connection failed: {connection_problem(failure)}") from failure

    async def _open_watch(self, path: str, **options: Any) -> aiohttp.ClientResponse:
        """Wait for the response head, which comes before the first event."""
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await self._streams.get(
                self.access.server + path, server_hostname=self.access.server_name, **options
            )

    async def _pages(
        self, path: str, query: list[tuple[str, str]], *, accept: str, page: int, timeout_s: float
    ) -> AsyncGenerator[tuple[list[Json], str]]:
        """Yield pages of at most `page` objects and PAGE_BYTES, or one larger object."""
        headers = {"Accept": accept}
        token, size = "", min(page, FIRST_PAGE)
        while True:
            params = [*query, ("limit", str(size)), *([("continue", token)] if token else [])]
            most = PAGE_BYTES if size > 1 else MAX_RESPONSE_BYTES
            try:
                raw = await self._send("GET", path, timeout_s, max_bytes=most, params=params, headers=headers)
            except ResponseTooLarge:
                if size == 1:
                    raise
                size = max(1, size // 4)
                continue
            size = max(1, min(page, 4 * size, size * (PAGE_BYTES // 2) // len(raw)))
            response = _parse("GET", path, raw)
            del raw
            # An empty list of metadata is null; a table has rows.
            items, metadata = response.get("items") or response.get("rows") or [], response["metadata"]
            yield items, metadata.get("resourceVersion", "")
            items.clear()  # frees the page before the next one is read
            token = metadata.get("continue", "")
            if not token:
                return

    async def _send(
        self, method: str, path: str, timeout_s: float, *, max_bytes: int = MAX_RESPONSE_BYTES, **options: Any
    ) -> bytearray:
        """Send one request and return the body of the response."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            status, raw = await _run_to_completion(
                self._exchange(method, path, max_bytes=max_bytes, timeout=timeout, **options)
            )
        except (aiohttp.ClientError, OSError) as failure:  # TimeoutError is an OSError
            raise Unavailable(
                f"{method} {path}: the API server did not respond in {timeout_s:g} s: {connection_problem(failure)}"
            ) from failure
        if status >= 400:
            raise error_of(method, path, status, raw)
        return raw

    async def _exchange(
        self, method: str, path: str, *, max_bytes: int, headers: dict[str, str], **more: Any
    ) -> tuple[int, bytearray]:
        headers = headers | await self._authorization()
        url, name = self.access.server + path, self.access.server_name
        async with self._calls.request(method, url, headers=headers, server_hostname=name, **more) as response:
            raw = bytearray()
            async for chunk in response.content.iter_any():
                raw += chunk
                if len(raw) > max_bytes:
                    raw.clear()  # the traceback would keep it
                    raise ResponseTooLarge(f"{method} {path}: the response is longer than {max_bytes} bytes")
            return response.status, raw

    async def _authorization(self) -> dict[str, str]:
        token = await self.access.token()
        return {"Authorization": f"Bearer {token}", **self.access.user} if token else dict(self.access.user)


async def _run_to_completion(work: Coroutine[Any, Any, T], *, discard: Callable[[T], None] = lambda _: None) -> T:
    """Await the work; if the caller is cancelled, finish the work first.

    So two writes of one caller never run at once, and no connection is dropped during its TLS handshake, which would
    leak it (CPython 3.11 forgets the transport).

    Args:
        work: The work.
        discard: Frees the result if the caller was cancelled and cannot use it.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled() and not task.exception():
            discard(task.result())
        raise


def _selectors(labels: str, fields: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]


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


def _parse(method: str, path: str, raw: bytes | bytearray) -> Json:
    try:
        response = orjson.loads(raw) if len(raw) <= _ORJSON_BYTES else json.loads(raw)
    except (ValueError, RecursionError) as fault:
        raise Unavailable(
            f"{method} {path}: the response is not JSON, so not from an API server: {bytes(raw[:80])!r}"
        ) from fault
    if not isinstance(response, dict):
        raise Unavailable(
            f"{method} {path}: the response is not an object, so not from an API server: {bytes(raw[:80])!r}"
        )
    return response
