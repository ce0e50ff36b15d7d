"""Certificates pass an independent verifier for every name of a server."""

import ipaddress
import stat
from pathlib import Path

import pytest
from cluster.certificates import CLIENTS, Certificates, make_certificates
from cluster.controlplane import API_SERVER_NAMES
from cryptography import x509
from cryptography.x509.oid import NameOID
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

HOSTS = (*API_SERVER_NAMES, "10.244.0.1", "builder-7")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("pki"), hosts=HOSTS, node="node-1")


def _load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def _subject(host: str) -> x509.IPAddress | x509.DNSName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


@pytest.mark.parametrize("host", HOSTS)
def test_the_server_is_trusted_for_each_of_its_names(certificates: Certificates, host: str) -> None:
    verifier = PolicyBuilder().store(Store([_load(certificates.ca)])).build_server_verifier(_subject(host))
    assert verifier.verify(_load(certificates.certificate("apiserver")), [])


@pytest.mark.parametrize("host", ["10.96.0.2", "kubernetes.default.svc.example.org"])
def test_the_server_is_not_trusted_for_other_names(certificates: Certificates, host: str) -> None:
    verifier = PolicyBuilder().store(Store([_load(certificates.ca)])).build_server_verifier(_subject(host))
    with pytest.raises(VerificationError):
        verifier.verify(_load(certificates.certificate("apiserver")), [])


def test_the_kubelet_certificate_names_the_node(certificates: Certificates) -> None:
    subject = _load(certificates.certificate("kubelet")).subject
    assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "system:node:node-1"
    assert subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)[0].value == "system:nodes"


@pytest.mark.parametrize("name", CLIENTS)
def test_client_certificates_are_not_valid_for_servers(certificates: Certificates, name: str) -> None:
    certificate = _load(certificates.certificate(name))
    certificate.verify_directly_issued_by(_load(certificates.ca))
    usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert list(usage) == [x509.ExtendedKeyUsageOID.CLIENT_AUTH]


def test_keys_are_readable_by_their_owner_only(certificates: Certificates) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in certificates.folder.glob("*.key")}
    assert modes
    assert set(modes.values()) == {0o600}
