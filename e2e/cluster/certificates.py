"""Certificate authority and certificates of one test cluster."""

import ipaddress
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME = timedelta(days=365)
# Kubernetes reads users from CN and groups from O of client certificates.
CLIENTS = {
    "admin": ("mldiagnostics-admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
    "proxy": ("system:kube-proxy", None),
    "kubelet-client": ("mldiagnostics-apiserver", "system:masters"),
    "front-proxy": ("front-proxy-client", None),
    "coredns": ("mldiagnostics-coredns", "system:masters"),
}


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files in one folder: `ca.crt`, `service-account.key`, and a `.crt` and `.key` per name."""

    folder: Path

    @property
    def ca(self) -> Path:
        return self.folder / "ca.crt"

    @property
    def ca_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def service_account_key(self) -> Path:
        return self.folder / "service-account.key"

    def certificate(self, name: str) -> Path:
        """Return the path of a certificate."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Return the path of a private key."""
        return self.folder / f"{name}.key"

    def mount(self, name: str, folder: Path) -> Path:
        """Write certificate and key as a Secret of kind `kubernetes.io/tls` is mounted; return the new folder."""
        folder.mkdir()
        shutil.copy(self.certificate(name), folder / "tls.crt")
        shutil.copy(self.key(name), folder / "tls.key")
        return folder


def make_certificates(folder: Path, *, hosts: Sequence[str], node: str | None = None) -> Certificates:
    """Write all certificates of a cluster; `hosts` are names and addresses of its API server."""
    folder.mkdir(parents=True, exist_ok=True)
    files = Certificates(folder)
    authority_key = ec.generate_private_key(ec.SECP256R1())
    authority = _authority(authority_key)
    files.ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    _write_key(files.ca_key, authority_key)
    _write_key(files.service_account_key, rsa.generate_private_key(public_exponent=65537, key_size=2048))
    clients = dict(CLIENTS) if node is None else CLIENTS | {"kubelet": (f"system:node:{node}", "system:nodes")}
    for name, (user, group) in clients.items():
        builder = _subject(user, group).add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        _issue(files, name, builder, authority, authority_key)
    builder = _subject("kube-apiserver", None)
    builder = builder.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False)
    _issue(files, "apiserver", builder, authority, authority_key)
    return files


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    builder = _subject("mldiagnostics-test-ca", None)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mldiagnostics-test-ca")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    return (
        builder.issuer_name(name)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )


def _subject(user: str, group: str | None) -> x509.CertificateBuilder:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group is not None:
        attributes.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name(attributes))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))  # clocks of a laptop and a container may differ
        .not_valid_after(now + LIFETIME)
    )


def _issue(
    files: Certificates,
    name: str,
    builder: x509.CertificateBuilder,
    authority: x509.Certificate,
    authority_key: ec.EllipticCurvePrivateKey,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    certificate = (
        builder.issuer_name(authority.subject)
        .public_key(key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(identifier, critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    files.certificate(name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(files.key(name), key)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
