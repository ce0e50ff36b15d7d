"""The CA bundle in the webhook's configuration, which API servers trust."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography import x509

from mldiagnostics_kube.certificates import pem

Json = Mapping[str, Any]


def published(configuration: Json) -> tuple[x509.Certificate, ...]:
    """Return the authorities that any entry of the configuration trusts."""
    trusted = [certificate for entry in _entries(configuration) for certificate in _read(entry)]
    return tuple(dict.fromkeys(trusted))


def trusts(configuration: Json, authority: x509.Certificate) -> bool:
    """Return whether every entry of the configuration trusts the authority."""
    return all(authority in _read(entry) for entry in _entries(configuration))


def publish(configuration: Json, trusted: Sequence[x509.Certificate]) -> dict[str, Any] | None:
    """Return a server-side apply patch that sets the bundle of every entry, or None.

    The patch holds only the bundles and the resourceVersion that was read. None means that every entry already trusts
    exactly these authorities.
    """
    bundle = base64.b64encode(pem.of_certificates(trusted)).decode()
    entries = _entries(configuration)
    if all(entry["clientConfig"].get("caBundle") == bundle for entry in entries):
        return None
    metadata = configuration["metadata"]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
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
