"""Certificates and keys as PEM text: read strictly, written plainly."""

from collections.abc import Iterable
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"


def certificates(text: bytes) -> tuple[x509.Certificate, ...]:
    """Read the certificates of a PEM text; none if it is blank.

    Raises ValueError if anything in it is damaged.
    """
    if not text.strip():
        return ()
    try:
        found = tuple(x509.load_pem_x509_certificates(text))
    except x509.InvalidVersion as fault:
        raise ValueError(f"a certificate is damaged: {fault}") from fault
    if len(found) != text.count(_BEGIN):
        raise ValueError("a certificate is damaged")
    return found


def private_key(text: bytes) -> EllipticCurvePrivateKey:
    """Read a private key on an elliptic curve; raises ValueError if it is none."""
    try:
        key = load_pem_private_key(text, password=None)
    except TypeError as encrypted:
        raise ValueError("the private key is encrypted") from encrypted
    except UnsupportedAlgorithm as unknown:
        raise ValueError(f"the private key is of an unknown kind: {unknown}") from unknown
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("the private key is on no elliptic curve")  # noqa: TRY004 - the text is wrong, not the type
    return key


def of_certificates(chain: Iterable[x509.Certificate]) -> bytes:
    """Write certificates one after the other."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)


def of_key(key: EllipticCurvePrivateKey) -> bytes:
    """Write a private key without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
