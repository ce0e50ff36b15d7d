"""When self-managed certificates change: a pure decision that never lets a client meet a leaf it does not trust.

Three rules make that so, however many replicas decide at once. An authority signs only after every API server can know
it: the bundle has held it for the settling time. It is trusted until it expires, so longer than any leaf it signed. The
bundle follows the Secret: who publishes has read the configuration before the Secret, and replaces just that version.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from cryptography import x509

from mldiagnostics_kube.certificates.authority import Lifetimes, issued_by, names_of, valid
from mldiagnostics_kube.certificates.content import SecretContent


class RotationStep(StrEnum):
    """What is done next with the Secret."""

    KEEP = "keep"
    WAIT = "wait until API servers know the new authority"
    NEW_AUTHORITY = "make an authority"
    NEW_LEAF = "issue a leaf"


@dataclass(frozen=True, slots=True)
class RotationRules:
    """What the certificates are for and how long they live."""

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
    """Decide what to do with the Secret's content (None: it holds nothing usable).

    `published` is what API servers are told to trust; `settled`: that has held the content's authority long enough.
    """
    if content is None or not valid(content.authority.certificate, now):
        return RotationStep.NEW_AUTHORITY
    authority, leaf = content.authority, content.leaf
    useful = leaf is not None and valid(leaf.certificate, now) and names_of(leaf.certificate) == rules.dns_names
    if leaf is not None and issued_by(leaf.certificate, authority.certificate):
        due = leaf.ends - now <= rules.lifetimes.leaf_ahead and leaf.ends < authority.ends
        if due or not useful:
            return RotationStep.NEW_LEAF
    if authority.ends - now <= rules.lifetimes.authority_ahead:
        return RotationStep.NEW_AUTHORITY
    if leaf is not None and issued_by(leaf.certificate, authority.certificate):
        return RotationStep.KEEP
    # Where the Secret was lost, replicas may still serve a leaf of an authority that only the bundle remembers.
    in_service = useful or (leaf is None and any(c != authority.certificate and valid(c, now) for c in published))
    return RotationStep.WAIT if in_service and not settled else RotationStep.NEW_LEAF
