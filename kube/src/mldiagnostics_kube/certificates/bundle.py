"""The CA bundle of the webhook's configuration: what the API servers trust, read from it and composed for it."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography import x509

from mldiagnostics_kube.certificates import pem

Json = Mapping[str, Any]


def published(configuration: Json) -> tuple[x509.Certificate, ...]:
    """Give the authorities that any entry of the configuration trusts; what is no certificate counts as none."""
    found = [certificate for entry in _entries(configuration) for certificate in _read(entry)]
    return tuple(dict.fromkeys(found))


def trusts(configuration: Json, authority: x509.Certificate) -> bool:
    """Tell whether every entry of the configuration trusts the authority."""
    return all(authority in _read(entry) for entry in _entries(configuration))


def publish(configuration: Json, trusted: Sequence[x509.Certificate]) -> dict[str, Any] | None:
    """Compose what makes every entry trust exactly these authorities, for server-side apply; None if all do already.

    It names nothing but the bundles, and replaces just the version of the configuration that was read.
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
    try:
        return pem.certificates(base64.b64decode(entry["clientConfig"].get("caBundle") or ""))
    except ValueError:
        return ()
