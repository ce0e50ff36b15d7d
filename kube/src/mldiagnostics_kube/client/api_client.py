"""A small client of the API server with a timeout on every call.

It replaces the `kubernetes` package, whose import costs each process 30 MB.
"""

from __future__ import annotations

import json
import os
from contextlib import aclosing
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import orjson
from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube.client import credentials
from mldiagnostics_kube.client.apiserver import (
    JSON,
    MERGE_PATCH,
    METADATA_LIST,
    TABLE,
    InvalidResponse,
    ResponseTooLarge,
    Unavailable,
    metadata_only_type,
)
from mldiagnostics_kube.client.shapes import LIST, problem_of, shape_of
from mldiagnostics_kube.client.transport import CALL_TIMEOUT_S, MAX_RESPONSE_BYTES, Transport

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence

    import aiohttp

    from mldiagnostics_kube.client.credentials import Credentials

    Json = dict[str, Any]
    Query = Sequence[tuple[str, str]]

T = TypeVar("T")

WATCH_S: Final = 120
"""How long one watch lasts. A quiet watch sends nothing, not even bookmarks, so only its end shows a dead stream."""
LIST_S: Final = 600.0
"""Longest time of one list, all its pages together: the API server forgets where a list continues after 5 minutes."""
FIRST_PAGE: Final = 50
PAGE: Final = 500
PAGE_BYTES: Final = 2 * 2**20
"""Largest page of a list: a larger one is dropped while it arrives and read again with fewer objects."""
_WITHOUT_OBJECT: Final = ("BOOKMARK", "ERROR")
"""Types of watch events whose object is not one of the collection."""
_ORJSON_BYTES: Final = 2**20
"""Longer responses are parsed by the standard library: orjson allocates 12 times the length, measured."""


class ApiClient:
    """A client of one API server; it reads and writes objects as JSON by URL path.

    Build paths with `apiserver.path_to`. Every method except `aclose` ends within its timeout, and raises only
    `apiserver.ClusterError` or a subclass: `NotFound`, `Conflict`, `RequestRejected`, `Unavailable` (try again),
    `ResponseTooLarge`, `InvalidResponse`.

    Example:
        client = await ApiClient.connect()
        pod = await client.get(path_to("", "v1", "pods", namespace="ml", name="trainer-0"))
        await client.aclose()
    """

    def __init__(self, access: Credentials, *, is_trusted: bool = True) -> None:
        self.access: Final = access
        self._transport = Transport(access)
        self._is_trusted = is_trusted

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect with the credentials of this process (see `credentials.find`).

        Raises:
            ConfigurationError: No usable credentials were found.
        """
        return cls.of(await credentials.find(environ))

    @classmethod
    def of(cls, access: Credentials, *, is_trusted: bool = True) -> Self:
        """Return a client with credentials.

        Args:
            access: Address and credentials.
            is_trusted: Whether objects certainly have the shapes of Kubernetes, as in the cluster of this process.
                Else each is checked when it arrives: a kubeconfig may name any server.

        Raises:
            ConfigurationError: The credentials are invalid.
        """
        try:
            return cls(access, is_trusted=is_trusted)
        except ValueError as fault:
            raise ConfigurationError(f"API server {access.server!r}: cannot connect: {fault}") from fault

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

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
        raw = await self._transport.send(method, path, timeout_s, params=query, headers=headers, **data)
        response = _parse(method, path, raw)
        if method != "DELETE":  # whose response may be a Status
            self._check(method, path, [response], metadata_only=accept not in (JSON, TABLE))
        return response

    async def get(self, path: str, *, metadata_only: bool = False, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object, or only its metadata."""
        accept = metadata_only_type("PartialObjectMetadata") if metadata_only else JSON
        return await self.request("GET", path, accept=accept, timeout_s=timeout_s)

    async def content(
        self, path: str, *, query: Query = (), max_bytes: int, timeout_s: float = CALL_TIMEOUT_S
    ) -> tuple[bytearray, Mapping[str, str]]:
        """Read a response that is not an object; return its body and its headers."""
        return await self._transport.fetch(
            "GET", path, timeout_s, max_bytes=max_bytes, params=query, headers={"Accept": "*/*"}
        )

    async def items(
        self,
        path: str,
        keep: Callable[[Json], T | None],
        *,
        labels: str = "",
        fields: str = "",
        metadata_only: bool = False,
        cached: bool = False,
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
            cached: Take the objects that the API server has in memory, which may be some time old. A selector of
                fields otherwise reads the whole collection from etcd.
            page: Most objects per request; pages of large objects are smaller.
            most: Stop after this number of kept objects; None keeps all.
            timeout_s: Limit in seconds for each page.
        """
        query = [*_selectors(labels, fields), *([("resourceVersion", "0")] if cached else [])]
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

    async def version(self, path: str) -> str:
        """Return the resourceVersion of a collection for `watch`."""
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
        async with aclosing(self._transport.lines(path, query=query, accept=accept, for_s=for_s)) as lines:
            async for line in lines:
                event = _parse("GET", path, line)
                if event.get("type") not in _WITHOUT_OBJECT:
                    self._check("GET", path, [event.get("object")], metadata_only=metadata_only)
                yield event

    async def open_socket(self, path: str, *, protocol: str, query: Query = ()) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket, as `Transport.open_socket` does."""
        return await self._transport.open_socket(path, protocol=protocol, query=query)

    async def _pages(
        self, path: str, query: list[tuple[str, str]], *, accept: str, page: int, timeout_s: float
    ) -> AsyncGenerator[tuple[list[Json], str]]:
        """Yield pages of at most `page` objects and PAGE_BYTES, or one larger object."""
        headers = {"Accept": accept}
        token, size, deadline = "", min(page, FIRST_PAGE), monotonic() + LIST_S
        while True:
            params = [*query, ("limit", str(size)), *([("continue", token)] if token else [])]
            most = PAGE_BYTES if size > 1 else MAX_RESPONSE_BYTES
            try:
                raw = await self._transport.send("GET", path, timeout_s, max_bytes=most, params=params, headers=headers)
            except ResponseTooLarge:
                if size == 1:
                    raise
                size = max(1, size // 4)
                continue
            size = max(1, min(page, 4 * size, size * (PAGE_BYTES // 2) // max(len(raw), 1)))
            response = _parse("GET", path, raw)
            del raw
            if problem := problem_of(response, LIST):
                raise _misshapen("GET", path, problem)
            # An empty list of metadata is null; a table has rows.
            items, metadata = response.get("items") or response.get("rows") or [], response["metadata"]
            if accept != TABLE:
                self._check("GET", path, items, metadata_only=accept != JSON)
            yield items, metadata.get("resourceVersion", "")
            items.clear()  # frees the page before the next one is read
            token = metadata.get("continue", "")
            if not token:
                return
            if monotonic() > deadline:
                raise Unavailable(f"GET {path}: the list did not end in {LIST_S:g} s")

    def _check(self, method: str, path: str, objects: Sequence[object], *, metadata_only: bool) -> None:
        """Raise `InvalidResponse` if an object of a foreign server is malformed."""
        if self._is_trusted:
            return
        shape = shape_of(path, metadata_only=metadata_only)
        try:
            problem = next(filter(None, (problem_of(each, shape) for each in objects)), None)
        except RecursionError:
            problem = "it is nested too deeply"
        if problem:
            raise _misshapen(method, path, problem)


def _misshapen(method: str, path: str, problem: str) -> InvalidResponse:
    return InvalidResponse(f"{method} {path}: the response is not from an API server: {problem}", detail=problem)


def _selectors(labels: str, fields: str) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]


def _parse(method: str, path: str, raw: bytes | bytearray) -> Json:
    try:
        response = orjson.loads(raw) if len(raw) <= _ORJSON_BYTES else json.loads(raw)
    except (ValueError, RecursionError) as fault:
        raise Unavailable(
            f"{method} {path}: the response is not JSON, so not from an API server: {bytes(raw[:80])!r}"
        ) from fault
    if not isinstance(response, dict):
        raise _misshapen(method, path, f"{bytes(raw[:80])!r} is not an object")
    return response
