"""How API servers prove who they are when they pass a request on; pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

CONFIG_NAMESPACE: Final = "kube-system"
CONFIG_NAME: Final = "extension-apiserver-authentication"
"""The ConfigMap in which each API server publishes the authority of its client certificate."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The client certificates of API servers."""

    authorities: str
    """As PEM."""
    names: frozenset[str]
    """Common names that they may have; empty: any."""

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Self:
        """Parse the ConfigMap.

        Raises:
            ValueError: The API server passes no requests on.
        """
        authorities = data.get("requestheader-client-ca-file", "")
        if "BEGIN CERTIFICATE" not in authorities:
            raise ValueError("has no requestheader-client-ca-file; start the API server with an aggregation layer")
        try:
            names = frozenset(str(name) for name in json.loads(data.get("requestheader-allowed-names") or "[]"))
        except (ValueError, TypeError) as error:
            raise ValueError(f"requestheader-allowed-names: {error}") from error
        return cls(authorities, names)

    def admits(self, certificate: Mapping[str, Any] | None) -> bool:
        """Return whether a verified certificate is that of an API server.

        Args:
            certificate: The certificate as the `ssl` module returns it; None without one.
        """
        if not certificate:
            return False
        common = {value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"}
        return not self.names or bool(common & self.names)
