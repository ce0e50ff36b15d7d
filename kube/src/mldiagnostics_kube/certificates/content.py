"""The Secret of self-managed certificates: authorities and the leaf."""

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
    """The authority, earlier authorities, and the leaf that all replicas serve."""

    authority: KeyPair
    """It signs the next leaf."""
    previous: tuple[x509.Certificate, ...] = ()
    """Earlier authorities that clients still trust."""
    leaf: KeyPair | None = None

    @property
    def trusted(self) -> tuple[x509.Certificate, ...]:
        """The authorities for clients to trust, newest first."""
        return (self.authority.certificate, *self.previous)

    @classmethod
    def of(cls, data: Data) -> "SecretContent":
        """Parse the data of the Secret; drop a leaf of an unknown authority.

        Raises:
            ValueError: The authority is missing or damaged; the message names the key of the Secret.
        """
        authority = _pair(data, AUTHORITY, AUTHORITY_KEY)
        if not is_authority(authority.certificate):
            raise ValueError(f"{AUTHORITY}: not a certificate authority")
        previous = _certificates(data, PREVIOUS)
        content = cls(authority, previous)
        try:
            leaf = _pair(data, LEAF, LEAF_KEY)
        except ValueError:
            return content
        signed = any(issued_by(leaf.certificate, signer) for signer in content.trusted)
        return cls(authority, previous, leaf) if signed else content

    def data(self) -> dict[str, str]:
        """Return the data of the Secret; every key is set, so that a patch replaces all."""
        texts = {
            AUTHORITY: pem.of_certificates([self.authority.certificate]),
            AUTHORITY_KEY: pem.of_key(self.authority.key),
            PREVIOUS: pem.of_certificates(self.previous),
            LEAF: pem.of_certificates([self.leaf.certificate]) if self.leaf else b"",
            LEAF_KEY: pem.of_key(self.leaf.key) if self.leaf else b"",
        }
        return {key: base64.b64encode(text).decode() for key, text in texts.items()}


def _pair(data: Data, certificate: str, key: str) -> KeyPair:
    chain = _certificates(data, certificate)
    if len(chain) != 1:
        raise ValueError(f"{certificate}: expected one certificate, it has {len(chain)}")
    try:
        pair = KeyPair(chain[0], pem.private_key(_text(data, key)))
    except ValueError as fault:
        raise ValueError(f"{key}: {fault}") from fault
    if not pair.matches:
        raise ValueError(f"{key}: not the key of {certificate}")
    return pair


def _certificates(data: Data, key: str) -> tuple[x509.Certificate, ...]:
    try:
        return pem.certificates(_text(data, key))
    except ValueError as fault:
        raise ValueError(f"{key}: {fault}") from fault


def _text(data: Data, key: str) -> bytes:
    return base64.b64decode(data.get(key) or "", validate=True)
