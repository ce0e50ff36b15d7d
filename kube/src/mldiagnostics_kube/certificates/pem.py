"""Certificates and keys as PEM text; parsing is strict."""

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
    """Parse the certificates of a PEM text; a blank text has none.

    Raises:
        ValueError: A certificate is damaged.
    """
    if not text.strip():
        return ()
    try:
        parsed = tuple(x509.load_pem_x509_certificates(text))
    except x509.InvalidVersion as fault:
        raise ValueError(f"a certificate is damaged: {fault}") from fault
    if len(parsed) != text.count(_BEGIN):
        raise ValueError("a certificate is damaged")
    return parsed


def private_key(text: bytes) -> EllipticCurvePrivateKey:
    """Parse an unencrypted private key on an elliptic curve.

    Raises:
        ValueError: The text is not such a key.
    """
    try:
        key = load_pem_private_key(text, password=None)
    except TypeError as encrypted:
        raise ValueError("the private key is encrypted") from encrypted
    except UnsupportedAlgorithm as unknown:
        raise ValueError(f"the private key is of an unknown type: {unknown}") from unknown
    if not isinstance(key, EllipticCurvePrivateKey):
        raise ValueError("the private key is not an elliptic-curve key")  # noqa: TRY004 - the text is wrong
    return key


def of_certificates(chain: Iterable[x509.Certificate]) -> bytes:
    """Return certificates as one PEM text."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in chain)


def of_key(key: EllipticCurvePrivateKey) -> bytes:
    """Return a private key as PEM without a password."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
