"""TLS handshakes in memory: the certificate of a server's context, and whether a client accepts it."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from cryptography import x509

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics_kube.certificates.authority import KeyPair


def shown(server: ssl.SSLContext, name: str, trusted: Iterable[KeyPair]) -> x509.Certificate:
    """Return the server's certificate after a handshake with a client that trusts the authorities for `name`.

    Raises ssl.SSLError if either side refuses.
    """
    client = ssl.create_default_context(cadata=b"".join(_der(pair) for pair in trusted))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname=name)
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [ours, theirs]
    while waiting:
        side = waiting.pop(0)
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            waiting.append(side)
    certificate = ours.getpeercert(binary_form=True)
    assert certificate is not None
    return x509.load_der_x509_certificate(certificate)


def _der(pair: KeyPair) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return pair.certificate.public_bytes(Encoding.DER)
