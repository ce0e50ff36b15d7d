"""The control plane of a process, by argument or environment; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from mldiagnostics.errors import ConfigurationError

PLANE_URL = "MLDIAG_CONTROL_PLANE_URL"
PEER_URL = "DIAGON_BASE_URL"
"""Variable of Google's SDK for a control plane over plain HTTP."""

TOKEN_FILE = "/var/run/secrets/mldiagnostics/token"  # noqa: S105 - a path
"""Token of the pod's service account for the control plane, injected by the webhook."""

Source: TypeAlias = Literal["base_url", "MLDIAG_CONTROL_PLANE_URL", "DIAGON_BASE_URL"]
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A control plane.

    Attributes:
        url: Its URL, without a slash at the end.
        source: Argument or variable that gave the URL.
        token_file: File with the token of a service account.
        ca_file: File with certificates that are trusted; empty for those of the system.
    """

    url: str
    source: Source
    token_file: str = TOKEN_FILE
    ca_file: str = ""

    @property
    def sends_token(self) -> bool:
        """Whether the connection is encrypted, or does not leave the host."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or parts.hostname in _LOOPBACK

    @property
    def trusts_system(self) -> bool:
        """Whether the certificates of the system are trusted too.

        Injected certificates are those of the injected URL; a URL of the program may have others.
        """
        return self.source == "base_url" or not self.ca_file


def endpoint(url: str, source: Source, *, token_file: str = "", ca_file: str = "") -> Endpoint:
    """Return the control plane at a URL.

    Raises:
        ConfigurationError: The URL is not one of HTTP; the message starts with the problem.
    """
    if not _is_url(url):
        raise ConfigurationError("is not the URL of a control plane and is ignored; use https://host:port")
    return Endpoint(url.rstrip("/"), source, token_file or TOKEN_FILE, ca_file)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    has_more = parts.username or parts.query or parts.fragment or any(ord(each) <= 32 for each in url)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0 and not has_more
