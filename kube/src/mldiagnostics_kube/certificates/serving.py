"""A TLS context of a server whose certificate can be replaced while it serves."""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.process.clock import Clock

if TYPE_CHECKING:
    from datetime import datetime


class ServingCertificate:
    """A TLS context with a certificate that can be replaced.

    Handshakes fail until a certificate is loaded. A replacement affects only new connections.
    """

    def __init__(self, clock: Clock) -> None:
        self.context: Final = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.expires: datetime | None = None
        self._clock = clock
        self._loaded: tuple[bytes, bytes] | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a certificate and it has not expired."""
        return self.expires is not None and self._clock() < self.expires

    def load(self, chain: bytes, key: bytes) -> bool:
        """Load a certificate for new connections.

        Args:
            chain: Certificates as PEM, the server's own first.
            key: Private key as PEM.

        Returns:
            False if this certificate is already loaded.

        Raises:
            ValueError: Certificate and key do not match; the previous certificate stays in service.
        """
        if (chain, key) == self._loaded:
            return False
        leaf = next(iter(pem.certificates(chain)), None)
        if leaf is None:
            raise ValueError("the file has no certificate")
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), chain, key)  # a failure would remove the live context's key
        _load(self.context, chain, key)
        self._loaded = chain, key
        self.expires = leaf.not_valid_after_utc
        return True


def _load(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    try:
        with _path_to(chain) as chain_path, _path_to(key) as key_path:
            context.load_cert_chain(chain_path, key_path, password=_no_password)
    except ssl.SSLError as fault:
        raise ValueError(f"certificate and key do not match: {fault}") from fault


def _no_password() -> str:
    """Return an empty password; without one, OpenSSL prompts on the terminal."""
    return ""


@contextmanager
def _path_to(text: bytes) -> Iterator[str]:
    """Yield the path of a file in memory: a key must not be written to a disk."""
    with os.fdopen(os.memfd_create("pem"), "wb") if sys.platform == "linux" else tempfile.TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"
