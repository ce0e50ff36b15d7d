"""What the Secret of self-managed certificates holds: the authority, those before it, and the leaf that all serve."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cryptography import x509

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import KeyPair, is_authority, issued_by

AUTHORITY: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"
PREVIOUS: Final = "previous-ca.crt"
LEAF: Final = "tls.crt"
LEAF_KEY: Final = "tls.key"

Data = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SecretContent:
    """An authority that signs, earlier ones that clients still trust, and the leaf in service, if there is one."""

    authority: KeyPair
    previous: tuple[x509.Certificate, ...] = ()
    leaf: KeyPair | None = None

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """What clients shall trust, newest first."""
        return (self.authority.certificate, *self.previous)

    @classmethod
    def of(cls, data: Data) -> "SecretContent":
        """Read the data of the Secret; raises ValueError that says what is wrong with it.

        A leaf that no trusted authority signed counts as none.
        """
        authority = _pair(data, AUTHORITY, AUTHORITY_KEY)
        if not is_authority(authority.certificate):
            raise ValueError(f"{AUTHORITY} is no authority")
        previous = _certificates(data, PREVIOUS)
        content = cls(authority, previous)
        try:
            leaf = _pair(data, LEAF, LEAF_KEY)
        except ValueError:
            return content
        signed = any(issued_by(leaf.certificate, signer) for signer in content.trusted)
        return cls(authority, previous, leaf) if signed else content

    def data(self) -> dict[str, str]:
        """Write the data of the Secret: every key, so that nothing of what was there remains."""
        texts = {
            AUTHORITY: pem.of_certificates([self.authority.certificate]),
            AUTHORITY_KEY: pem.of_key(self.authority.key),
            PREVIOUS: pem.of_certificates(self.previous),
            LEAF: pem.of_certificates([self.leaf.certificate]) if self.leaf else b"",
            LEAF_KEY: pem.of_key(self.leaf.key) if self.leaf else b"",
        }
        return {key: base64.b64encode(text).decode() for key, text in texts.items()}


def _pair(data: Data, certificate: str, key: str) -> KeyPair:
    found = _certificates(data, certificate)
    if len(found) != 1:
        raise ValueError(f"{certificate} holds {len(found)} certificates, not one")
    try:
        pair = KeyPair(found[0], pem.private_key(_text(data, key)))
    except ValueError as fault:
        raise ValueError(f"{key}: {fault}") from fault
    if not pair.matches:
        raise ValueError(f"{key} is not the key of {certificate}")
    return pair


def _certificates(data: Data, key: str) -> tuple[x509.Certificate, ...]:
    try:
        return pem.certificates(_text(data, key))
    except ValueError as fault:
        raise ValueError(f"{key}: {fault}") from fault


def _text(data: Data, key: str) -> bytes:
    return base64.b64decode(data.get(key) or "", validate=True)
