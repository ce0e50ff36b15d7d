"""One connection to a control plane, by HTTP of the standard library."""

from __future__ import annotations

import gzip
import http.client
import os
import re
import socket
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote, urlsplit

from mldiagnostics.control_plane.answers import read_answer, read_problem, retry_after_s
from mldiagnostics.control_plane.endpoint import PEER_URL
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from mldiagnostics.control_plane.answers import Acknowledgement
    from mldiagnostics.control_plane.endpoint import Endpoint


Fault: TypeAlias = Literal[
    "answer", "busy", "certificate", "denied", "not-found", "rejected", "token", "too-large", "unreachable"
]

_TOKEN = re.compile(r"[\x21-\x7e]+")
_MAX_ANSWER_BYTES = 64 * 1024
_MAX_TOKEN_BYTES = 64 * 1024
_MAX_CA_BYTES = 16 * 1024 * 1024
_FAULTS: dict[int, Fault] = {
    **dict.fromkeys((400, 422), "rejected"),
    **dict.fromkeys((401, 403), "denied"),
    **dict.fromkeys((404, 405), "not-found"),
    413: "too-large",
    429: "busy",
}


_ADVICE: dict[Fault, str] = {
    "denied": "check that the token has the audience mldiagnostics and that this pod belongs to the run",
    "not-found": "check that the URL is that of the mldiagnostics operator's API",
}


class ReportFailed(Exception):
    """A report that was not accepted; the message is for people."""

    def __init__(self, fault: Fault, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.retry_after_s = retry_after_s


class _TLSConnection(http.client.HTTPSConnection):
    """A connection by TLS that resolves a plain host name as bytes.

    For a name as text, the standard library loads its tables of international names, 0.9 MiB.
    """

    def __init__(self, host: str, port: int | None, *, timeout: float, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._trust = context

    def connect(self) -> None:  # type: ignore[explicit-override]
        """Connect to the server."""
        if not self.host.isascii():
            super().connect()
            return
        host = self.host.encode()
        plain = socket.create_connection((host, self.port), self.timeout)  # type: ignore[arg-type]
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sock = self._trust.wrap_socket(plain, server_hostname=host)
        except BaseException:
            plain.close()
            raise


class ControlPlaneClient:
    """Sends the reports of a run; used by one thread.

    The connection is kept for the next report. Token and certificates are read again, because they are replaced while
    the run lasts: the token for each report, the certificates for each connection.
    """

    def __init__(self, endpoint: Endpoint, run_id: str) -> None:
        self._endpoint = endpoint
        parts = urlsplit(endpoint.url)
        self._is_tls, self._host, self._port = parts.scheme == "https", parts.hostname or "", parts.port
        self._path = f"{parts.path.rstrip('/')}/v1/runs/{quote(run_id, safe='')}/reports"
        self._connection: http.client.HTTPConnection | None = None

    def send(self, body: bytes, *, timeout_s: float) -> Acknowledgement:
        """Send a report.

        Raises:
            ReportFailed: It was not accepted, or its answer cannot be read.
        """
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip", **self._authorization()}
        packed = gzip.compress(body, 6, mtime=0)
        try:
            return self._send(packed, headers, timeout_s)
        except ssl.SSLCertVerificationError as error:
            raise self._failed(
                "certificate",
                f"its certificate is not trusted: {error.verify_message}; set MLDIAG_CONTROL_PLANE_CA to a file with "
                "the certificates of its authority",
            ) from error
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
            raise self._failed("unreachable", f"it cannot be reached: {reason}; reports wait until it can") from error
        finally:
            if self._connection is not None and self._connection.sock is None:
                self._connection = None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None

    def _send(self, packed: bytes, headers: dict[str, str], timeout_s: float) -> Acknowledgement:
        if self._connection is not None:
            with suppress(ConnectionError, ssl.SSLError, http.client.BadStatusLine):  # closed since the last report
                return self._exchange(self._connection, packed, headers, timeout_s)
            self.close()
        self._connection = self._connect(timeout_s)
        return self._exchange(self._connection, packed, headers, timeout_s)

    def _connect(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self._is_tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        return _TLSConnection(self._host, self._port, timeout=timeout_s, context=self._trust())

    def _trust(self) -> ssl.SSLContext:
        endpoint = self._endpoint
        context = ssl.create_default_context() if endpoint.trusts_system else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if endpoint.ca_file:
            try:
                context.load_verify_locations(cadata=_content(endpoint.ca_file, _MAX_CA_BYTES).decode("ascii"))
            except (OSError, ValueError) as error:
                raise self._failed(
                    "certificate", f"MLDIAG_CONTROL_PLANE_CA={endpoint.ca_file!r} cannot be read: {error}"
                ) from error
        return context

    def _exchange(
        self, connection: http.client.HTTPConnection, packed: bytes, headers: dict[str, str], timeout_s: float
    ) -> Acknowledgement:
        try:
            connection.timeout = timeout_s
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            connection.request("POST", self._path, packed, headers)
            response = connection.getresponse()
            content = response.read(_MAX_ANSWER_BYTES)
        except BaseException:
            connection.close()
            raise
        if response.will_close or not response.isclosed():
            connection.close()
        if response.status != http.client.OK:
            raise self._refused(response.status, content, response.getheader("Retry-After"))
        try:
            return read_answer(content)
        except ValueError as error:
            raise self._failed("answer", f"its answer is not one of a control plane: {error}") from error

    def _authorization(self) -> dict[str, str]:
        endpoint = self._endpoint
        if not endpoint.sends_token:
            return {}
        try:
            token = _content(endpoint.token_file, _MAX_TOKEN_BYTES).decode("ascii").strip()
            if not _TOKEN.fullmatch(token):
                raise ValueError(f"{endpoint.token_file}: not one line of a token")  # noqa: TRY301 - one way out
        except (OSError, ValueError) as error:
            if endpoint.source == PEER_URL:
                return {}
            raise self._failed(
                "token",
                f"its token cannot be read: {error}; mount a token of the pod's service account with the audience "
                "mldiagnostics, and set MLDIAG_CONTROL_PLANE_TOKEN_FILE to its path",
            ) from error
        return {"Authorization": f"Bearer {token}"}

    def _refused(self, status: int, content: bytes, retry_after: str | None) -> ReportFailed:
        fault: Fault = _FAULTS.get(status, "busy" if status >= 500 else "answer")
        problem = read_problem(content)
        if fault == "denied" and not self._endpoint.sends_token:
            problem = "a token is sent by HTTPS only; use an https:// URL"
        words = printable(problem or _ADVICE.get(fault, ""))
        return self._failed(
            fault, f"it answered {status}{f': {words}' if words else ''}", retry_after=retry_after_s(retry_after)
        )

    def _failed(self, fault: Fault, problem: str, *, retry_after: float | None = None) -> ReportFailed:
        return ReportFailed(fault, f"control plane {self._endpoint.url}: {problem}", retry_after_s=retry_after)


def _content(path: str, max_bytes: int) -> bytes:
    """Return the content of a file that may also be an endless device or a pipe."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
        content = file.read(max_bytes + 1) or b""
    if len(content) > max_bytes:
        raise ValueError(f"{path}: more than {max_bytes >> 10} KiB")
    return content
