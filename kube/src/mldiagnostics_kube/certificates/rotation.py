"""The decision when to replace self-managed certificates.

Clients trust every served leaf at any time.
Three rules ensure this for any number of replicas:

* An authority signs only after the trust store has held it for the settling time, so that every client knows it.
* An authority stays trusted until it expires, which is later than any leaf that it signed.
* A replica that publishes authorities has read the trust store before the Secret, and replaces only that version.

Clients that read the trust store only at their start know an older version for as long as they run. For them, a leaf in
service is replaced by one of a new authority only after the overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from cryptography import x509

from mldiagnostics_kube.certificates.authority import Lifetimes, issued_by, names_of, valid
from mldiagnostics_kube.certificates.content import SecretContent


class RotationStep(StrEnum):
    """Next change of the Secret; the values are for the log."""

    KEEP = "keep"
    WAIT = "wait until clients trust the new authority"
    NEW_AUTHORITY = "make an authority"
    NEW_LEAF = "issue a leaf"


@dataclass(frozen=True, slots=True)
class RotationRules:
    """Names, lifetimes and waiting times of the certificates."""

    authority_name: str
    dns_names: frozenset[str]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    settle: timedelta = timedelta(seconds=30)
    """From the publication of an authority to its first signature; API servers usually know it within a second."""
    overlap: timedelta = timedelta()
    """Lead of an authority while a leaf of an earlier one is in service, if longer; less than `leaf_ahead`."""


def decide(
    content: SecretContent | None,
    published: Sequence[x509.Certificate],
    now: datetime,
    rules: RotationRules,
    *,
    trusted_for: timedelta | None,
) -> RotationStep:
    """Decide the next change of the Secret.

    Args:
        content: Content of the Secret; None if unusable.
        published: Authorities in the trust store.
        now: Current time.
        rules: Names, lifetimes and waiting times.
        trusted_for: How long the trust store has held the current authority; None if it does not.
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
    # If the Secret was lost, replicas may still serve a leaf of an authority that only the trust store holds.
    in_service = usable or (leaf is None and any(c != authority.certificate and valid(c, now) for c in published))
    wait = max(rules.settle, rules.overlap) if usable else rules.settle
    settled = trusted_for is not None and trusted_for >= wait
    return RotationStep.WAIT if in_service and not settled else RotationStep.NEW_LEAF
