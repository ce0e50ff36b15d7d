"""The decision when to replace self-managed certificates.

Clients trust every served leaf at any time.
Three rules ensure this for any number of replicas:

* An authority signs only after the bundle has held it for the settling time, so that every API server knows it.
* An authority stays trusted until it expires, which is later than any leaf that it signed.
* A replica that publishes the bundle has read the configuration before the Secret, and replaces only that version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from mldiagnostics_kube.certificates.authority import Lifetimes, issued_by, names_of, valid
from mldiagnostics_kube.certificates.content import SecretContent


class RotationStep(StrEnum):
    """Next change of the Secret; the values are for the log."""

    KEEP = "keep"
    WAIT = "wait until API servers trust the new authority"
    NEW_AUTHORITY = "make an authority"
    NEW_LEAF = "issue a leaf"


@dataclass(frozen=True, slots=True)
class RotationRules:
    """Names and lifetimes of the certificates."""

    authority_name: str
    dns_names: frozenset[str]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)


def decide(
    content: SecretContent | None,
    published: Sequence[x509.Certificate],
    now: datetime,
    rules: RotationRules,
    *,
    settled: bool,
) -> RotationStep:
    """Decide the next change of the Secret.

    Args:
        content: Content of the Secret; None if unusable.
        published: Authorities in the CA bundle.
        now: Current time.
        rules: Names and lifetimes.
        settled: Whether the bundle has held the current authority for the settling time.
    """
    if content is None or not valid(content.authority.certificate, now):
        return RotationStep.NEW_AUTHORITY
    authority, leaf = content.authority, content.leaf
    usable = leaf is not None and valid(leaf.certificate, now) and names_of(leaf.certificate) == rules.dns_names
    if leaf is not None and issued_by(leaf.certificate, authority.certificate):
        expires_soon = leaf.ends - now <= rules.lifetimes.leaf_ahead and leaf.ends < authority.ends
        if expires_soon or not usable:
            return RotationStep.NEW_LEAF
    if authority.ends - now <= rules.lifetimes.authority_ahead:
        return RotationStep.NEW_AUTHORITY
    if leaf is not None and issued_by(leaf.certificate, authority.certificate):
        return RotationStep.KEEP
    # If the Secret was lost, replicas may still serve a leaf of an authority that only the bundle holds.
    in_service = usable or (leaf is None and any(c != authority.certificate and valid(c, now) for c in published))
    return RotationStep.WAIT if in_service and not settled else RotationStep.NEW_LEAF
