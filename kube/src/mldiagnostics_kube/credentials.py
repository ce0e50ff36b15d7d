"""Credentials for the API server, from the pod's service account or a kubeconfig."""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import ConfigurationError

from mldiagnostics_kube.apiserver import ClusterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Json = dict[str, Any]

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_BY_PLUGIN: Final = ("exec", "auth-provider")


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


async def find(environ: Mapping[str, str] = os.environ) -> Credentials:
    """Load KUBECONFIG, the pod's service account, or ~/.kube/config, in this order.

    Args:
        environ: Environment with `KUBECONFIG`, `KUBERNETES_SERVICE_HOST`, `KUBERNETES_SERVICE_PORT` and `HOME`.

    Raises:
        ConfigurationError: There are no credentials, or they cannot be read; the message names the file.
    """
    chosen = environ.get("KUBECONFIG")
    if not chosen and environ.get("KUBERNETES_SERVICE_HOST"):
        return _of_service_account(environ)
    path = Path(chosen or f"{environ.get('HOME', '')}/.kube/config")
    try:
        return await asyncio.to_thread(_of_kubeconfig, path) or await _by_plugin(path)
    except (OSError, ValueError, LookupError, TypeError) as fault:
        raise ConfigurationError(
            f"kubeconfig '{path}': cannot read the credentials of the API server: {fault!r}"
        ) from fault


def _from_file(path: Path) -> Callable[[], Awaitable[str]]:
    async def read() -> str:
        """Read the token again, because the kubelet renews its file."""
        try:
            return path.read_text(encoding="ascii").strip()  # noqa: ASYNC240 - a small local file
        except (OSError, ValueError) as fault:
            raise ClusterError(f"token '{path}': cannot be read: {fault}") from fault

    return read


def _of_service_account(environ: Mapping[str, str]) -> Credentials:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        ca_pem = (_ACCOUNT / "ca.crt").read_bytes()
    except OSError as fault:
        raise ConfigurationError(f"service account '{_ACCOUNT}': cannot be read: {fault}") from fault
    address = f"[{host}]" if ":" in host else host
    return Credentials(f"https://{address}:{port}", _from_file(_ACCOUNT / "token"), ca_pem)


def _of_kubeconfig(path: Path) -> Credentials | None:
    """Read the current context; return None if its user needs a credential plugin."""
    import yaml  # noqa: PLC0415 - no process in a cluster needs it

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as fault:
        raise ValueError(f"not YAML: {fault}") from fault
    context = _named(config, "context", config["current-context"])
    cluster, user = _named(config, "cluster", context["cluster"]), _named(config, "user", context["user"])
    if any(plugin in user for plugin in _BY_PLUGIN):
        return None
    folder = path.parent
    return Credentials(
        server=str(cluster["server"]).rstrip("/"),
        token=_from_file(folder / user["tokenFile"]) if user.get("tokenFile") else fixed(str(user.get("token", ""))),
        ca_pem=_pem(cluster, "certificate-authority", folder),
        certificate_pem=_pem(user, "client-certificate", folder),
        key_pem=_pem(user, "client-key", folder),
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
    )


def _named(config: Json, kind: str, name: str) -> Json:
    (entry,) = (entry[kind] for entry in config[f"{kind}s"] if entry["name"] == name)
    return dict(entry)


def _pem(entry: Json, field: str, folder: Path) -> bytes | None:
    """Read a field of an entry, given as data or as a file relative to the kubeconfig."""
    if data := entry.get(f"{field}-data"):
        return base64.b64decode(data)
    return (folder / entry[field]).read_bytes() if entry.get(field) else None


def _content(path: str | None) -> bytes | None:
    return Path(path).read_bytes() if path else None


async def _by_plugin(path: Path) -> Credentials:
    """Run the plugin with the `kubernetes` package, which renews expired tokens."""
    try:
        from kubernetes.aio import config as loader  # noqa: PLC0415 - a second to import
        from kubernetes.aio.client.configuration import Configuration  # noqa: PLC0415
    except ModuleNotFoundError as missing:
        raise ConfigurationError(
            f"kubeconfig '{path}': the user needs a credential plugin; install the package `kubernetes`"
        ) from missing
    configuration = Configuration()
    try:
        await loader.load_kube_config(config_file=str(path), client_configuration=configuration)
    except loader.ConfigException as fault:
        raise ValueError(str(fault)) from fault

    async def token() -> str:
        authorization = await configuration.get_api_key_with_prefix("BearerToken") or ""
        return authorization.rpartition(" ")[2]

    return Credentials(
        server=configuration.host,
        token=token,
        ca_pem=_content(configuration.ssl_ca_cert),
        certificate_pem=_content(configuration.cert_file),
        key_pem=_content(configuration.key_file),
        insecure=not configuration.verify_ssl,
    )
