"""HTTP exchanges with one API server, each bounded in time and size."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import aiohttp

from mldiagnostics_kube.client.apiserver import ResponseTooLarge, Unavailable, error_of
from mldiagnostics_kube.client.failures import connection_problem

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence

    from mldiagnostics_kube.client.credentials import Credentials

    Query = Sequence[tuple[str, str]]

T = TypeVar("T")

CALL_TIMEOUT_S: Final = 10.0
MAX_RESPONSE_BYTES: Final = 10 * 2**20
"""Largest response: above one object of 1.5 MiB, etcd's limit, of characters that JSON writes with six bytes each."""
PARALLEL_CALLS: Final = 64
_MAX_LINE_BYTES: Final = 8 * 2**20
_MAX_ERROR_BYTES: Final = 64 * 1024
_MAX_MESSAGE_BYTES: Final = 4 * 2**20
"""Largest message of a WebSocket; a kubelet sends 32 KiB at a time."""
_UNCOMPRESSED: Final = {"Accept-Encoding": "identity"}
"""A few compressed kilobytes may expand to a page of many megabytes at once, before it can be dropped."""


class Transport:
    """The connections to one API server: up to 64 for calls, others for streams.

    Every method except `aclose` ends within its timeout, and raises only `apiserver.ClusterError` or a subclass.

    Raises:
        ValueError: The credentials are invalid.
    """

    def __init__(self, access: Credentials) -> None:
        self._access = access
        tls = access.tls() or True
        self._calls = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=PARALLEL_CALLS), headers=_UNCOMPRESSED, proxy=access.proxy
        )
        self._streams = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls, limit=0), proxy=access.proxy, middlewares=(_reject_redirects,)
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._calls.close()
        await self._streams.close()

    async def send(
        self, method: str, path: str, timeout_s: float, *, max_bytes: int = MAX_RESPONSE_BYTES, **options: Any
    ) -> bytearray:
        """Send one request and return the body of the response."""
        return (await self.fetch(method, path, timeout_s, max_bytes=max_bytes, **options))[0]

    async def fetch(
        self, method: str, path: str, timeout_s: float, *, max_bytes: int = MAX_RESPONSE_BYTES, **options: Any
    ) -> tuple[bytearray, Mapping[str, str]]:
        """Send one request and return the body and the headers of the response."""
        timeout = aiohttp.ClientTimeout(total=timeout_s)
        try:
            status, raw, headers = await _run_to_completion(
                self._exchange(method, path, max_bytes=max_bytes, timeout=timeout, **options)
            )
        except (aiohttp.ClientError, OSError) as failure:  # TimeoutError is an OSError
            raise Unavailable(
                f"{method} {path}: the API server did not respond in {timeout_s:g} s: {connection_problem(failure)}"
            ) from failure
        if status >= 300:
            raise error_of(method, path, status, raw)
        return raw, headers

    async def lines(self, path: str, *, query: Query, accept: str, for_s: float) -> AsyncGenerator[bytes]:
        """Yield the lines of a response that the API server ends after `for_s` seconds."""
        headers = {"Accept": accept, **await self._authorization()}
        timeout = aiohttp.ClientTimeout(total=for_s + CALL_TIMEOUT_S, connect=CALL_TIMEOUT_S)
        try:
            opening = self._open_stream(path, params=query, headers=headers, timeout=timeout)
            with _unread(await _run_to_completion(opening, discard=_abort)) as response:
                if response.status >= 300:
                    async with asyncio.timeout(CALL_TIMEOUT_S):
                        raise error_of("GET", path, response.status, await response.content.read(_MAX_ERROR_BYTES))
                async for line in _lines(response.content):
                    yield line
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
                    self._access.server + path,
                    params=query,
                    protocols=(protocol,),
                    headers=await self._authorization(),
                    server_hostname=self._access.server_name,
                    autoclose=True,
                    max_msg_size=_MAX_MESSAGE_BYTES,
                )
        except aiohttp.WSServerHandshakeError as refusal:
            raise error_of("GET", path, refusal.status, refusal.message.encode()) from refusal
        except (aiohttp.ClientError, OSError) as failure:
            raise Unavailable(f"GET {path}: the connection failed: {connection_problem(failure)}") from failure

    async def _open_stream(self, path: str, **options: Any) -> aiohttp.ClientResponse:
        """Wait for the response head, which comes before the first line."""
        async with asyncio.timeout(CALL_TIMEOUT_S):
            return await self._streams.get(
                self._access.server + path,
                server_hostname=self._access.server_name,
                allow_redirects=False,  # credentials are for this address
                **options,
            )

    async def _exchange(
        self, method: str, path: str, *, max_bytes: int, headers: dict[str, str], **more: Any
    ) -> tuple[int, bytearray, Mapping[str, str]]:
        headers = headers | await self._authorization()
        url, name = self._access.server + path, self._access.server_name
        sending = self._calls.request(method, url, headers=headers, server_hostname=name, allow_redirects=False, **more)
        with _unread(await sending) as response:
            raw = bytearray()
            async for chunk in response.content.iter_any():
                raw += chunk
                if len(raw) > max_bytes:
                    raw.clear()  # the traceback would keep it
                    raise ResponseTooLarge(f"{method} {path}: the response is longer than {max_bytes} bytes")
            return response.status, raw, response.headers

    async def _authorization(self) -> dict[str, str]:
        token = await self._access.token()
        return {"Authorization": f"Bearer {token}", **self._access.user} if token else dict(self._access.user)


@contextmanager
def _unread(response: aiohttp.ClientResponse) -> Iterator[aiohttp.ClientResponse]:
    """Drop the connection at the end, unless the response was read to its end."""
    try:
        yield response
    finally:
        _abort(response)


def _abort(response: aiohttp.ClientResponse) -> None:
    """Drop the connection at once.

    TLS would wait for the server to say that it closes too, which one that hangs does not.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


async def _reject_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Reject a redirect, which a handshake of a WebSocket would follow."""
    response = await handler(request)
    if 300 <= response.status < 400:
        _abort(response)
        raise error_of(request.method, request.url.path, response.status, b"")
    return response


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
