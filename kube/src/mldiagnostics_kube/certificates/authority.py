"""A private certificate authority and the server certificates that it issues."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, TypeVar

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

T = TypeVar("T", bound=x509.ExtensionType)

BACKDATED: Final = timedelta(hours=1)  # clocks of nodes differ
_NAME_MAX: Final = 40  # a common name has 64 characters; the rest is the serial number's


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """Validity of certificates, and how long before expiry they are replaced.

    An authority is replaced earlier than a leaf's lifetime before it expires, so it outlives every leaf that it issued.
    """

    authority: timedelta = timedelta(days=730)
    authority_ahead: timedelta = timedelta(days=180)
    leaf: timedelta = timedelta(days=90)
    leaf_ahead: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def ends(self) -> datetime:
        """When it expires."""
        return self.certificate.not_valid_after_utc

    @property
    def matches(self) -> bool:
        """Whether the key belongs to the certificate."""
        try:
            return self.key.public_key() == self.certificate.public_key()
        except (UnsupportedAlgorithm, ValueError):
            return False


def valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether the certificate is valid at `now`."""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def is_authority(certificate: x509.Certificate) -> bool:
    """Return whether the certificate may sign others."""
    constraints = _extension(certificate, x509.BasicConstraints)
    return constraints is not None and constraints.ca


def issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether the authority's key signed the certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (InvalidSignature, UnsupportedAlgorithm, ValueError, TypeError):
        return False
    return True


def names_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names of the certificate."""
    names = _extension(certificate, x509.SubjectAlternativeName)
    return frozenset(names.get_values_for_type(x509.DNSName)) if names else frozenset()


def new_authority(name: str, now: datetime, lifetimes: Lifetimes) -> KeyPair:
    """Make a self-signed authority.

    The subject is unique, so that a verifier never tries the key of another authority.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{name[:_NAME_MAX]} {serial:x}"[:64])])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    builder = (
        _builder(subject, subject, key, serial, now, now + lifetimes.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    return KeyPair(builder.sign(key, SHA256()), key)


def issue(authority: KeyPair, names: Iterable[str], now: datetime, lifetimes: Lifetimes) -> KeyPair:
    """Issue a server certificate that expires no later than the authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    issuer_key = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    ends = min(now + lifetimes.leaf, authority.ends)
    alternatives = x509.SubjectAlternativeName([x509.DNSName(name) for name in sorted(names)])
    builder = (
        _builder(x509.Name([]), issuer.subject, key, x509.random_serial_number(), now, ends)
        .add_extension(alternatives, critical=True)  # critical, because the subject is empty
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_key), critical=False)
    )
    return KeyPair(builder.sign(authority.key, SHA256()), key)


def _extension(certificate: x509.Certificate, kind: type[T]) -> T | None:
    """Return an extension, or None if it is absent or cannot be read."""
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType, ValueError):
        return None


def _builder(  # noqa: PLR0917 - the fields of a certificate
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    serial: int,
    now: datetime,
    ends: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(serial)
        .not_valid_before(now - BACKDATED)
        .not_valid_after(ends)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
