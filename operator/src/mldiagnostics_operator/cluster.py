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
from mldiagnostics_api.service.apiserver import (
    JSON,
    JSON_PATCH,
    MERGE_PATCH,
    ClusterError,
    Conflict,
    NotFound,
    Refused,
    Unavailable,
    error_of,
    path_to,
)
from mldiagnostics_api.service.apiserver import metadata_only as accept_metadata

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    Json = dict[str, Any]

T = TypeVar("T")

__all__ = [  # what callers need beside the door itself
    "JSON_PATCH",
    "Access",
    "Cluster",
    "ClusterError",
    "Conflict",
    "NotFound",
    "Refused",
    "Unavailable",
    "path_to",
]

CALL_TIMEOUT_S: Final = 10.0
PAGE: Final = 500
PARALLEL_CALLS: Final = 64


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
        accept = accept_metadata("PartialObjectMetadata") if metadata_only else JSON
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
        accept = accept_metadata("PartialObjectMetadataList") if metadata_only else JSON
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
        content_type: str = JSON,
        accept: str = JSON,
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
            raise error_of(method, path, status, raw)
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
