"""A TLS server that answers each connection once, and then hangs: it neither reads TLS nor closes."""

from __future__ import annotations

import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import Queue
from typing import TYPE_CHECKING

from support.servers.certificates import write_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEADLINE_S = 20


class StalledServer:
    """A server that begins a response and never goes on.

    Args:
        folder: Folder for its certificate.
        answer: The only bytes that it sends.
    """

    def __init__(self, folder: Path, answer: bytes) -> None:
        certificate, key = folder / "server.crt", folder / "server.key"
        write_certificate(certificate, key, "127.0.0.1")
        self.authority = certificate.read_bytes()
        self.dropped: Queue[None] = Queue()
        """Gets an entry for each connection that the client has dropped."""
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(certificate, key)
        self._answer = answer

    @contextmanager
    def listening(self) -> Iterator[str]:
        """Serve one connection at a time while the block runs; gives the URL."""
        with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
            pool.submit(self._serve, listener)
            try:
                yield f"https://127.0.0.1:{listener.getsockname()[1]}"
            finally:
                listener.shutdown(socket.SHUT_RDWR)

    def _serve(self, listener: socket.socket) -> None:
        with suppress(OSError):  # of accept, at the end
            while True:
                self._answer_once(listener.accept()[0])

    def _answer_once(self, connection: socket.socket) -> None:
        connection.settimeout(DEADLINE_S)
        left = suppress(ConnectionError, ssl.SSLError)  # at any moment, on a slow machine also in the handshake
        with left, self._tls.wrap_socket(connection, server_side=True) as encrypted:
            encrypted.recv(65536)
            encrypted.sendall(self._answer)
            while socket.socket.recv(encrypted, 65536):  # below TLS, so that nothing is answered
                pass
        self.dropped.put(None)
