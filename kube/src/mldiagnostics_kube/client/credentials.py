"""Credentials for the API server, from the pod's service account or a kubeconfig."""

from __future__ import annotations

import asyncio
import os
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube.client import kubeconfig
from mldiagnostics_kube.client.apiserver import ClusterError
from mldiagnostics_kube.client.exec_plugin import ExecPlugin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mldiagnostics_kube.client.kubeconfig import KubeContext

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Address of the API server and identity of the client, in PEM where it applies."""

    server: str
    """URL without a trailing slash."""
    token: Callable[[], Awaitable[str]]
    """Reads the current bearer token, empty if there is none; raises ClusterError if that fails."""
    ca_pem: bytes | None = None
    certificate_pem: bytes | None = None
    key_pem: bytes | None = None
    insecure: bool = False
    """Whether the server's certificate is not verified."""
    server_name: str | None = None
    """Name in the server's certificate, if it is not that of the address."""
    proxy: str | None = None
    """URL of the proxy to the server."""
    user: Mapping[str, str] = field(default_factory=dict)
    """Headers of the user that is impersonated."""

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context of a client; None for a server without TLS.

        Raises:
            ValueError: A certificate or the key is not valid PEM.
        """
        if not self.server.startswith("https:"):
            return None
        try:
            context = ssl.create_default_context(cadata=self.ca_pem.decode("ascii") if self.ca_pem else None)
            if self.insecure:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.certificate_pem and self.key_pem:
                with NamedTemporaryFile() as pair:  # OpenSSL wants a file
                    pair.write(self.certificate_pem + b"\n" + self.key_pem)
                    pair.flush()
                    context.load_cert_chain(pair.name)
        except ssl.SSLError as fault:
            raise ValueError(f"invalid certificate or key: {fault}") from fault
        return context


def fixed(token: str) -> Callable[[], Awaitable[str]]:
    """Return a `token` of `Credentials` that never changes."""

    async def read() -> str:
        return token

    return read


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """A cluster as a person or a pod sees it."""

    context: str
    """Context of the kubeconfig; empty for the service account of a pod."""
    namespace: str
    """Namespace of requests that name none."""
    credentials: Credentials


async def find(environ: Mapping[str, str] = os.environ) -> Credentials:
    """Load KUBECONFIG, the pod's service account, or ~/.kube/config, in this order.

    Args:
        environ: Environment with `KUBECONFIG`, `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT` and `HOME`.

    Raises:
        ConfigurationError: There are no credentials, or they cannot be read; the message names the file.
    """
    return (await find_access(environ)).credentials


async def find_access(
    environ: Mapping[str, str] = os.environ, *, path: str | None = None, context: str | None = None
) -> ClusterAccess:
    """Load the credentials of a context, or of the current one, with its namespace.

    Args:
        environ: As of `find`.
        path: Kubeconfig to read; None reads those of the environment.
        context: Name of the context; None for the current one, or the service account of a pod.

    Raises:
        ConfigurationError: There are no credentials, or they cannot be read; the message names the file.
    """
    chosen = path or environ.get("KUBECONFIG")
    if not chosen and not context and environ.get("KUBERNETES_SERVICE_HOST"):
        return _of_service_account(environ)
    if path or not chosen:
        paths = [Path(path or f"{environ.get('HOME', '')}/.kube/config")]
    else:
        paths = [Path(each) for each in chosen.split(os.pathsep) if each]
    config = await asyncio.to_thread(kubeconfig.load, paths)
    selected = config.context(context)
    try:
        access = await _of_context(selected, config.description)
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise ConfigurationError(
            f"{config.description}: cannot read the credentials of the API server: {fault!r}; repair the file"
        ) from fault
    return ClusterAccess(selected.name, selected.namespace or _DEFAULT_NAMESPACE, access)


def _from_file(path: Path) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        """Read the token again, because the kubelet renews its file."""
        try:
            return path.read_text(encoding="ascii").strip()  # noqa: ASYNC240 - a small local file
        except (OSError, ValueError) as fault:
            raise ClusterError(f"token '{path}': cannot be read: {fault}") from fault

    return read


def _of_service_account(environ: Mapping[str, str]) -> ClusterAccess:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        ca_pem = (_ACCOUNT / "ca.crt").read_bytes()
    except OSError as fault:
        raise ConfigurationError(
            f"service account '{_ACCOUNT}': cannot be read: {fault}; set automountServiceAccountToken of the pod"
        ) from fault
    address = f"[{host}]" if ":" in host else host
    try:
        namespace = (_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        namespace = _DEFAULT_NAMESPACE
    access = Credentials(f"https://{address}:{port}", _from_file(_ACCOUNT / "token"), ca_pem)
    return ClusterAccess("", namespace, access)


async def _of_context(context: KubeContext, description: str) -> Credentials:
    cluster, user = context.cluster, context.user
    server = str(cluster.fields["server"]).rstrip("/")
    access = Credentials(
        server=server,
        token=_token(context),
        ca_pem=await asyncio.to_thread(cluster.pem, "certificate-authority"),
        certificate_pem=await asyncio.to_thread(user.pem, "client-certificate"),
        key_pem=await asyncio.to_thread(user.pem, "client-key"),
        insecure=bool(cluster.fields.get("insecure-skip-tls-verify")),
        server_name=cluster.fields.get("tls-server-name"),
        proxy=cluster.fields.get("proxy-url") or _proxy_of_environment(server),
        user=_impersonated(user.fields),
    )
    if not user.fields.get("exec"):
        return access
    plugin = ExecPlugin(user.fields["exec"], user.folder, cluster.fields)
    try:
        credential = await plugin.credential()
    except ClusterError as fault:
        raise ConfigurationError(f"{description}: {fault}") from fault
    return replace(
        access,
        token=plugin.token,
        certificate_pem=credential.certificate_pem or access.certificate_pem,
        key_pem=credential.key_pem or access.key_pem,
    )


def _token(context: KubeContext) -> Callable[[], Awaitable[str]]:
    user = context.user
    if file := user.fields.get("tokenFile"):
        return _from_file(user.folder / file)
    if provider := user.fields.get("auth-provider"):
        return fixed(_token_of_provider(provider, context.name))
    return fixed(str(user.fields.get("token") or ""))


def _token_of_provider(provider: Mapping[str, Any], context: str) -> str:
    """Return the stored token of the provider `oidc`; kubectl has removed all others."""
    token = (provider.get("config") or {}).get("id-token")
    if provider.get("name") != "oidc" or not token:
        raise ConfigurationError(
            f"context '{context}': auth-provider '{provider.get('name')}' has no token; use a credential plugin, the "
            "field `exec` of the user"
        )
    return str(token)


def _proxy_of_environment(server: str) -> str | None:
    """Return the proxy of a person's shell. Pods reach their API server without one."""
    url = urlsplit(server)
    if proxy_bypass(url.netloc):
        return None
    return getproxies().get(url.scheme)


def _impersonated(user: Mapping[str, Any]) -> dict[str, str]:
    headers = {"Impersonate-User": user.get("as"), "Impersonate-Uid": user.get("as-uid")}
    return {name: str(value) for name, value in headers.items() if value}
