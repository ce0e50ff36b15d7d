"""The new content of the Secret after a step of the rotation."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509

from mldiagnostics_kube.certificates.authority import is_authority, issue, new_authority
from mldiagnostics_kube.certificates.content import SecretContent
from mldiagnostics_kube.certificates.rotation import RotationRules

PREVIOUS_MAX: Final = 4  # bounds the bundle if the Secret is lost again and again


def with_new_authority(
    content: SecretContent | None, published: Sequence[x509.Certificate], now: datetime, rules: RotationRules
) -> SecretContent:
    """Return the content with a new authority; earlier ones stay trusted.

    Args:
        content: Content of the Secret; None if unusable. Then the authorities in `published` stay trusted, because
            replicas may still serve their leaves.
        published: Authorities in the trust store.
        now: Current time.
        rules: Name and lifetimes.
    """
    before = content.trusted if content else tuple(filter(is_authority, published))
    authority = new_authority(rules.authority_name, now, rules.lifetimes)
    return SecretContent(authority, _unexpired(before, now)[:PREVIOUS_MAX], content.leaf if content else None)


def with_new_leaf(content: SecretContent, now: datetime, rules: RotationRules) -> SecretContent:
    """Return the content with a new leaf of the authority."""
    leaf = issue(content.authority, rules.dns_names, now, rules.lifetimes)
    return SecretContent(content.authority, _unexpired(content.previous, now), leaf)


def _unexpired(certificates: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(certificate for certificate in certificates if now < certificate.not_valid_after_utc)
