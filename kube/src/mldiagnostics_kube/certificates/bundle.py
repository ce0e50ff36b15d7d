"""The CA bundle in the webhook's configuration, which API servers trust."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cryptography import x509

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.client.apiserver import path_to

Json = Mapping[str, Any]

_GROUP: Final = "admissionregistration.k8s.io"
_KIND: Final = "MutatingWebhookConfiguration"


@dataclass(frozen=True, slots=True)
class WebhookBundle:
    """A MutatingWebhookConfiguration as trust store: the bundles of its entries."""

    configuration: str
    """Name of the MutatingWebhookConfiguration."""

    @property
    def path(self) -> str:
        """URL path of the configuration."""
        return path_to(_GROUP, "v1", "mutatingwebhookconfigurations", name=self.configuration)

    @property
    def title(self) -> str:
        """Kind and name of the configuration, for logs."""
        return f"{_KIND} {self.configuration}"

    @property
    def if_missing(self) -> str:
        """Consequence if the configuration does not exist, for logs."""
        return "the API server does not call this webhook"

    def published(self, stored: Json) -> tuple[x509.Certificate, ...]:
        """Return the authorities that any entry of the configuration trusts."""
        trusted = [certificate for entry in _entries(stored) for certificate in _read(entry)]
        return tuple(dict.fromkeys(trusted))

    def trusts(self, stored: Json, authority: x509.Certificate) -> bool:
        """Return whether every entry of the configuration trusts the authority."""
        return all(authority in _read(entry) for entry in _entries(stored))

    def changed(self, stored: Json) -> datetime | None:  # noqa: ARG002 - as in TrustStore
        """Return None: the time since which a replica has seen the bundle counts."""
        return None

    def publish(self, stored: Json, trusted: Sequence[x509.Certificate]) -> dict[str, Any] | None:
        """Return a patch that sets the bundle of every entry, or None if it is set.

        The patch holds only the bundles and the resourceVersion that was read.
        """
        bundle = base64.b64encode(pem.of_certificates(trusted)).decode()
        entries = _entries(stored)
        if all(entry["clientConfig"].get("caBundle") == bundle for entry in entries):
            return None
        metadata = stored["metadata"]
        return {
            "apiVersion": f"{_GROUP}/v1",
            "kind": _KIND,
            "metadata": {"name": metadata["name"], "resourceVersion": metadata["resourceVersion"]},
            "webhooks": [{"name": entry["name"], "clientConfig": {"caBundle": bundle}} for entry in entries],
        }


def _entries(configuration: Json) -> Sequence[Json]:
    return configuration.get("webhooks") or ()


def _read(entry: Json) -> tuple[x509.Certificate, ...]:
    """Read the bundle of an entry; a damaged one counts as empty."""
    try:
        return pem.certificates(base64.b64decode(entry["clientConfig"].get("caBundle") or ""))
    except ValueError:
        return ()
