"""What the Secret holds after a step of the rotation: new keys, and who stays trusted."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509

from mldiagnostics_kube.certificates.authority import is_authority, issue, new_authority
from mldiagnostics_kube.certificates.content import SecretContent
from mldiagnostics_kube.certificates.rotation import RotationRules

PREVIOUS_MAX: Final = 4  # so that losing the Secret again and again does not make the bundle ever longer


def with_new_authority(
    content: SecretContent | None, published: Sequence[x509.Certificate], now: datetime, rules: RotationRules
) -> SecretContent:
    """Put a new authority in front; those before it stay trusted, and the leaf stays in service.

    Where there was no usable content, the bundle tells whose leaves replicas may still serve.
    """
    before = content.trusted if content else tuple(filter(is_authority, published))
    authority = new_authority(rules.authority_name, now, rules.lifetimes)
    return SecretContent(authority, _unexpired(before, now)[:PREVIOUS_MAX], content.leaf if content else None)


def with_new_leaf(content: SecretContent, now: datetime, rules: RotationRules) -> SecretContent:
    """Put a leaf of the authority into service."""
    leaf = issue(content.authority, rules.dns_names, now, rules.lifetimes)
    return SecretContent(content.authority, _unexpired(content.previous, now), leaf)


def _unexpired(certificates: Iterable[x509.Certificate], now: datetime) -> tuple[x509.Certificate, ...]:
    return tuple(certificate for certificate in certificates if now < certificate.not_valid_after_utc)
