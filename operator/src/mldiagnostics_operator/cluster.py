"""The one door to the API server: JSON in and out, a deadline on every call, failures named for what to do next."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import aiohttp
from kubernetes.aio import config as kubernetes_config
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from mldiagnostics.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    Json = dict[str, Any]

T = TypeVar("T")

CALL_TIMEOUT_S: Final = 10.0
PAGE: Final = 500
PARALLEL_CALLS: Final = 64
_METADATA_ONLY: Final = "application/json;as={kind};g=meta.k8s.io;v=v1,application/json"
_JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"


class ClusterError(Exception):
    """The API server did not do what it was asked; `status` is its HTTP status, 0 without an answer."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unavailable(ClusterError):
    """No answer, or one that says to come back later: the same call may succeed soon."""


class NotFound(ClusterError):
    """The object, or its kind, does not exist."""


class Conflict(ClusterError):
    """The object exists already, has changed, or is not the one that was meant."""


class Refused(ClusterError):
    """Forbidden or invalid: the same call would fail again."""


_PASSING: Final = frozenset({408, 410, 429, 500, 502, 503, 504})
_NAMED: Final = {404: NotFound, 409: Conflict}


def path_to(
    group: str,
    version: str,
    plural: str,
    *,
    namespace: str | None = None,
    name: str | None = None,
    sub: str | None = None,
) -> str:
    """Write the URL path of a resource, an object or its subresource; the core group is the empty string."""
    parts = ["/apis", group, version] if group else ["/api", version]
    if namespace is not None:
        parts += ["namespaces", namespace]
    parts += [part for part in (plural, name, sub) if part is not None]
    return "/".join(parts)


@dataclass(frozen=True, slots=True)
class Access:
    """How the API server is reached, for a client of another library: `authorization` is the header's whole value."""

    server: str
    insecure: bool
    authorization: str
    ca_path: str | None
    certificate_path: str | None
    key_path: str | None


class Cluster:
    """Verbs on paths of the API server.

    Every method but `close` raises Unavailable, NotFound, Conflict or Refused, and nothing else, within its timeout.
    """

    def __init__(self, configuration: Configuration) -> None:
        configuration.connection_pool_maxsize = PARALLEL_CALLS
        self._client = ApiClient(configuration)

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect as the pod's service account inside a cluster, else by KUBECONFIG or its default place.

        Raises ConfigurationError if there is neither.
        """
        configuration = Configuration()
        chosen = environ.get("KUBECONFIG")
        try:
            if not chosen and environ.get("KUBERNETES_SERVICE_HOST"):
                kubernetes_config.load_incluster_config(client_configuration=configuration)
            else:
                chosen = chosen or str(Path.home() / ".kube" / "config")
                await kubernetes_config.load_kube_config(config_file=chosen, client_configuration=configuration)
        except kubernetes_config.ConfigException as fault:
            raise ConfigurationError(f"There is no way to the API server: {fault}") from fault
        return cls(configuration)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def access(self) -> Access:
        """Say how this connection is made now; a service account's token is read anew from its file."""
        configuration = self._client.configuration
        return Access(
            server=configuration.host,
            insecure=not configuration.verify_ssl,
            authorization=await configuration.get_api_key_with_prefix("BearerToken") or "",
            ca_path=configuration.ssl_ca_cert,
            certificate_path=configuration.cert_file,
            key_path=configuration.key_file,
        )

    async def get(self, path: str, *, metadata_only: bool = False, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object, or its metadata without the rest."""
        accept = _METADATA_ONLY.format(kind="PartialObjectMetadata") if metadata_only else _JSON
        return await self._call("GET", path, accept=accept, timeout_s=timeout_s)

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
        accept = _METADATA_ONLY.format(kind="PartialObjectMetadataList") if metadata_only else _JSON
        selectors = [(name, value) for name, value in (("labelSelector", labels), ("fieldSelector", fields)) if value]
        query = [*selectors, ("limit", str(page))]
        return [keep(item) async for item in self._pages(path, query, accept, timeout_s)]

    async def create(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Make an object; Conflict if the name is taken."""
        return await self._call("POST", path, body=body, timeout_s=timeout_s)

    async def replace(self, path: str, body: Json, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Write an object whole; Conflict unless its resourceVersion is the newest."""
        return await self._call("PUT", path, body=body, timeout_s=timeout_s)

    async def patch(self, path: str, body: Json | Sequence[Json], *, content_type: str = MERGE_PATCH) -> Json:
        """Change parts of an object."""
        return await self._call("PATCH", path, body=body, content_type=content_type)

    async def delete(self, path: str, *, uid: str) -> None:
        """Delete the object if it is still the one with this uid; Conflict if it is another."""
        await self._call("DELETE", path, body={"preconditions": {"uid": uid}})

    async def _pages(
        self, path: str, query: list[tuple[str, str]], accept: str, timeout_s: float
    ) -> AsyncIterator[Json]:
        page = query
        while True:
            answer = await self._call("GET", path, query=page, accept=accept, timeout_s=timeout_s)
            for item in answer["items"] or ():  # an empty list of metadata is null
                yield item
            token = answer["metadata"].get("continue")
            if not token:
                return
            page = [*query, ("continue", token)]

    async def _call(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Json | Sequence[Json] | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
        timeout_s: float = CALL_TIMEOUT_S,
    ) -> Json:
        headers = {"Accept": accept, "Content-Type": content_type}
        try:
            exchange = self._exchange(method, path, query=list(query), headers=headers, body=body, timeout_s=timeout_s)
            status, raw = await _to_its_end(exchange)
        except (aiohttp.ClientError, OSError) as failure:  # TimeoutError is an OSError
            what = str(failure) or type(failure).__name__
            raise Unavailable(
                f"The API server did not answer {method} {path} within {timeout_s:g} s: {what}"
            ) from failure
        if status >= 400:
            raise _error(method, path, status, raw)
        try:
            answer: Json = json.loads(raw)
        except ValueError as fault:
            raise Unavailable(f"What answers {method} {path} is no API server: {raw[:80]!r} is no JSON") from fault
        return answer

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]],
        headers: dict[str, str],
        body: Json | Sequence[Json] | None,
        timeout_s: float,
    ) -> tuple[int, bytes]:
        request = await self._client.param_serialize(
            method, path, query_params=query, header_params=headers, body=body, auth_settings=["BearerToken"]
        )
        response = await self._client.call_api(*request, _request_timeout=aiohttp.ClientTimeout(total=timeout_s))
        return response.status, await response.read()


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


def _error(method: str, path: str, status: int, raw: bytes) -> ClusterError:
    try:
        said = json.loads(raw)["message"]
    except (ValueError, KeyError, TypeError):
        said = raw[:200].decode(errors="replace")
    kind = Unavailable if status in _PASSING else _NAMED.get(status, Refused)
    return kind(f"The API server answered {method} {path} with {status}: {said}", status=status)
