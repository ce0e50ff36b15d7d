"""The one door to the API server: JSON in and out, a deadline on every call, watches that end when they fall silent.

Without the Kubernetes client, which would cost each replica 30 MB.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final, Self

import aiohttp
import orjson
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.service.apiserver import JSON, ClusterError, Unavailable, error_of, metadata_only

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    Json = dict[str, Any]
    Query = Sequence[tuple[str, str]]

CALL_TIMEOUT_S: Final = 10.0
# A kind of which nothing has changed since the API server started is silent all that time, without a bookmark even:
# that a stream is dead shows in nothing but that it does not end.
WATCH_S: Final = 120
PAGE: Final = 100
_MAX_LINE_BYTES: Final = 8 * 2**20
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Cluster:
    """Verbs on paths of the API server.

    Every method but `aclose` raises what `mldiagnostics_api.service.apiserver` names, and nothing else.
    """

    def __init__(self, server: str, tls: ssl.SSLContext | None, token: Callable[[], str]) -> None:
        self._server = server
        self._token = token
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls or True), json_serialize=lambda body: orjson.dumps(body).decode()
        )

    @classmethod
    async def connect(cls, environ: Mapping[str, str] = os.environ) -> Self:
        """Connect as the pod's service account inside a cluster, else by the file that KUBECONFIG names.

        Raises ConfigurationError if there is neither.
        """
        host = environ.get("KUBERNETES_SERVICE_HOST")
        if environ.get("KUBECONFIG"):
            return cls(*await asyncio.to_thread(_kubeconfig, Path(environ["KUBECONFIG"])))
        if not host:
            raise ConfigurationError("There is no way to the API server: this is no pod, and KUBECONFIG is not set")
        try:
            tls = ssl.create_default_context(cafile=_ACCOUNT / "ca.crt")
        except OSError as fault:
            raise ConfigurationError(f"The service account in {_ACCOUNT} cannot be read: {fault}") from fault
        address = f"[{host}]" if ":" in host else host
        return cls(f"https://{address}:{environ.get('KUBERNETES_SERVICE_PORT', '443')}", tls, _account_token)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.close()

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
        """Send one request and give the object that is answered."""
        headers = {"Accept": accept, "Content-Type": content_type}
        data = None if body is None else orjson.dumps(body)
        try:
            async with self._send(
                method, path, query, headers, data=data, timeout=aiohttp.ClientTimeout(total=timeout_s)
            ) as response:
                status, raw = response.status, await response.read()
        except (aiohttp.ClientError, OSError) as silent:  # TimeoutError is an OSError
            what = str(silent) or type(silent).__name__
            raise Unavailable(
                f"The API server did not answer {method} {path} within {timeout_s:g} s: {what}"
            ) from silent
        if status >= 400:
            raise error_of(method, path, status, raw)
        return _parsed(method, path, raw)

    async def get(self, path: str, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read one object."""
        return await self.request("GET", path, timeout_s=timeout_s)

    async def metadata(self, path: str, *, timeout_s: float = CALL_TIMEOUT_S) -> Json:
        """Read the metadata of one object: PartialObjectMetadata."""
        return await self.request("GET", path, accept=metadata_only("PartialObjectMetadata"), timeout_s=timeout_s)

    async def metadata_pages(self, path: str) -> AsyncIterator[tuple[list[Json], str]]:
        """Read the metadata of all objects page by page, each with the resourceVersion of the list."""
        token = ""
        while True:
            query = [("limit", str(PAGE)), *([("continue", token)] if token else [])]
            page = await self.request("GET", path, query=query, accept=metadata_only("PartialObjectMetadataList"))
            yield page.get("items") or [], page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue", "")
            if not token:
                return

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
        headers = {"Accept": metadata_only("PartialObjectMetadata")}
        timeout = aiohttp.ClientTimeout(total=for_s + CALL_TIMEOUT_S, connect=CALL_TIMEOUT_S)
        try:
            async with self._send("GET", path, query, headers, timeout=timeout) as response:
                if response.status >= 400:
                    raise error_of("GET", path, response.status, await response.read())
                async for line in _lines(response.content):
                    yield _parsed("GET", path, line)
        except (aiohttp.ClientError, OSError) as broken:
            what = str(broken) or type(broken).__name__
            raise Unavailable(f"The watch of {path} broke: {what}") from broken

    def _send(
        self, method: str, path: str, query: Query, headers: dict[str, str], **options: Any
    ) -> aiohttp.client._RequestContextManager:
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        return self._session.request(method, self._server + path, params=query, headers=headers, **options)


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


def _account_token() -> str:
    """Read the service account's token: the kubelet renews the file while the process runs."""
    try:
        return (_ACCOUNT / "token").read_text(encoding="ascii").strip()
    except OSError as fault:
        raise ClusterError(f"The token of the service account cannot be read: {fault}") from fault


def _kubeconfig(path: Path) -> tuple[str, ssl.SSLContext | None, Callable[[], str]]:
    """Read the current context of a kubeconfig whose credentials stand in it: for a webhook outside a cluster."""
    import yaml  # noqa: PLC0415 - no replica in a cluster needs it

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config, "context", config["current-context"])
        cluster, user = _named(config, "cluster", context["cluster"]), _named(config, "user", context["user"])
        server, token = str(cluster["server"]), str(user.get("token", ""))
        return server, _trust(cluster, user) if server.startswith("https:") else None, lambda: token
    except (OSError, ValueError, LookupError, TypeError, yaml.YAMLError) as fault:
        raise ConfigurationError(f"There is no way to the API server: kubeconfig {path}: {fault!r}") from fault


def _named(config: Json, kind: str, name: str) -> Json:
    (found,) = (entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name)
    return dict(found)


def _trust(cluster: Json, user: Json) -> ssl.SSLContext:
    """Make the TLS context of a kubeconfig's entries; certificates and keys are base64 of PEM."""
    ca = cluster.get("certificate-authority-data")
    tls = ssl.create_default_context(cadata=base64.b64decode(ca).decode() if ca else None)
    if "client-certificate-data" in user:
        with NamedTemporaryFile() as pair:  # OpenSSL wants a file
            for half in ("client-certificate-data", "client-key-data"):
                pair.write(base64.b64decode(user[half]) + b"\n")
            pair.flush()
            tls.load_cert_chain(pair.name)
    return tls
