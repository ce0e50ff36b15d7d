"""The TLS context that new connections get, with a certificate that is exchanged while it serves."""

import os
import ssl
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.clock import Clock

if TYPE_CHECKING:
    from datetime import datetime


class Serving:
    """A server's TLS context; handshakes fail until a certificate is there. Standing connections are never touched."""

    def __init__(self, clock: Clock) -> None:
        self.context: Final = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.expires: datetime | None = None
        self._clock = clock
        self._shown: tuple[bytes, bytes] | None = None

    @property
    def ready(self) -> bool:
        """Whether there is a certificate and it has not expired."""
        return self.expires is not None and self._clock() < self.expires

    def show(self, chain: bytes, key: bytes) -> bool:
        """Give new connections this certificate (PEM, the server's own first); False if they get it already.

        Raises ValueError, and goes on with the one before, if certificate and key are no pair.
        """
        if (chain, key) == self._shown:
            return False
        leaf = next(iter(pem.certificates(chain)), None)
        if leaf is None:
            raise ValueError("there is no certificate")
        _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), chain, key)  # a failure would leave the live context without key
        _load(self.context, chain, key)
        self._shown = chain, key
        self.expires = leaf.not_valid_after_utc
        return True


def _load(context: ssl.SSLContext, chain: bytes, key: bytes) -> None:
    try:
        with _path_to(chain) as chain_path, _path_to(key) as key_path:
            context.load_cert_chain(chain_path, key_path, password=_no_password)
    except ssl.SSLError as fault:
        raise ValueError(f"certificate and key are no pair: {fault}") from fault


def _no_password() -> str:
    """Answer for OpenSSL, which would ask the terminal about an encrypted key."""
    return ""


@contextmanager
def _path_to(text: bytes) -> Iterator[str]:
    """Give a path that reads the text: OpenSSL wants files, and a private key shall not lie on a disk."""
    with os.fdopen(os.memfd_create("pem"), "wb") if sys.platform == "linux" else tempfile.TemporaryFile() as file:
        file.write(text)
        file.seek(0)
        yield f"/dev/fd/{file.fileno()}"
