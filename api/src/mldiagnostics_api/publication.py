"""The ConfigMap in which the operator publishes its control plane for webhooks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from mldiagnostics_api.formats import quote

PUBLICATION_NAMESPACE: Final = "kube-public"
"""Anybody may read there by convention; only administrators of the cluster write."""
PUBLICATION_NAME: Final = "mldiagnostics-control-plane"

MAX_CA_CHARACTERS: Final = 4096
"""Every pod carries the certificates, within `injection.contents.MAX_BYTES` for all additions."""
_URL: Final = re.compile(r"https?://[\x21-\x7e]{1,500}")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_URL_KEY: Final = "url"
_CA_KEY: Final = "ca.crt"
_NAMESPACES_KEY: Final = "namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Address of the control plane, as pods get it."""

    url: str
    ca: str = ""
    """Certificates of its authorities in PEM; empty: those of the container."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces that the operator serves; empty: all."""

    def serves(self, namespace: str) -> bool:
        """Return whether pods of a namespace can report to the control plane."""
        return not self.namespaces or namespace in self.namespaces

    def data(self) -> dict[str, str]:
        """Return the data of the ConfigMap."""
        listed = {_NAMESPACES_KEY: ",".join(sorted(self.namespaces))} if self.namespaces else {}
        return {_URL_KEY: self.url, _CA_KEY: self.ca} | listed

    @classmethod
    def of(cls, data: Mapping[str, str]) -> Self | None:
        """Parse the data of the ConfigMap; None if nothing is published.

        Raises:
            ValueError: A key has an invalid value; the message names the key.
        """
        url, ca, listed = (data.get(key, "") for key in (_URL_KEY, _CA_KEY, _NAMESPACES_KEY))
        if not url:
            return None
        if not _URL.fullmatch(url):
            raise ValueError(f"{_URL_KEY}: {quote(url)} is not a URL such as https://host:8443")
        if len(ca) > MAX_CA_CHARACTERS:
            raise ValueError(f"{_CA_KEY}: {len(ca)} characters; at most {MAX_CA_CHARACTERS} fit into a pod")
        namespaces = frozenset(listed.split(",")) if listed else frozenset[str]()
        for name in namespaces:
            if not _NAMESPACE.fullmatch(name):
                raise ValueError(f"{_NAMESPACES_KEY}: {quote(name)} is not the name of a namespace")
        return cls(url=url, ca=ca, namespaces=namespaces)
