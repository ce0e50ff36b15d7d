"""A control plane over HTTPS that answers by the contract, and misbehaves on request."""

from __future__ import annotations

import gzip
import json
import socket
import ssl
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

from mldiagnostics.goodput.events.packing import apply_clock_steps, unpack
from support.servers.certificates import write_certificate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mldiagnostics.goodput.events.event import Event
    from mldiagnostics.goodput.events.packing import Entry

TOKEN = "token-of-the-pod"


@dataclass(frozen=True)
class Answer:
    """An answer in place of the usual one; without a status the connection is reset."""

    status: int | None = None
    content: bytes = b'{"error": "of the test"}'
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class ReportServer:
    """Everything that SDKs have reported."""

    url: str
    ca: str
    token_file: Path
    interval_s: float = 1
    token: str = TOKEN
    reports: list[dict[str, Any]] = field(default_factory=list)
    """Accepted reports."""
    refused: list[int | None] = field(default_factory=list)
    compressed: list[int] = field(default_factory=list)
    """Sizes of the accepted reports."""
    answers: list[Answer | None] = field(default_factory=list)
    """The next answers; None stands for the usual one."""
    persists: bool = True
    """Whether accepted reports are persisted."""
    lost_events: int = 0
    """Number of persisted events that the next answer forgets."""
    entries: dict[str, list[Entry]] = field(default_factory=dict)
    connections: int = 0
    _condition: threading.Condition = field(default_factory=threading.Condition)

    @property
    def variables(self) -> dict[str, str]:
        """Environment of a program that reports here."""
        return {
            "MLDIAG_CONTROL_PLANE_URL": self.url,
            "MLDIAG_CONTROL_PLANE_CA": self.ca,
            "MLDIAG_CONTROL_PLANE_TOKEN_FILE": str(self.token_file),
        }

    def events(self) -> list[Event]:
        """Return the goodput events of all incarnations."""
        return [event for entries in self.entries.values() for event in apply_clock_steps(entries)]

    def take(self, handler: BaseHTTPRequestHandler) -> Answer:
        """Return the answer to a request, by the contract."""
        packed = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self._condition:
            answer = self.answers.pop(0) if self.answers else None
            if answer is not None:
                self.refused.append(answer.status)
                return answer
            if handler.headers["Authorization"] != f"Bearer {self.token}":
                self.refused.append(401)
                return Answer(401)
            report = json.loads(gzip.decompress(packed))
            self.reports.append(report | {"path": handler.path})
            self.compressed.append(len(packed))
            return Answer(200, json.dumps(self._acknowledge(report)).encode())

    def _acknowledge(self, report: dict[str, Any]) -> dict[str, Any]:
        known = self.entries.setdefault(report["incarnation"], [])
        events = report.get("events", {"first": 0, "items": []})
        assert events["first"] <= len(known), "a gap in the events"
        known[events["first"] :] = unpack(events["items"])
        if 0 < self.lost_events < len(known):
            del known[len(known) - self.lost_events :]
            self.lost_events = 0
        return {
            "persistedSequence": report["sequence"] if self.persists else 0,
            "persistedEvents": len(known) if self.persists else 0,
            "intervalSeconds": self.interval_s,
        }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    plane: ClassVar[ReportServer]

    def setup(self) -> None:  # type: ignore[explicit-override]
        super().setup()
        self.plane.connections += 1

    def do_POST(self) -> None:
        answer = self.plane.take(self)
        if answer.status is None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            self.connection.close()
            return
        self.send_response(answer.status)
        for name, value in {"Content-Length": str(len(answer.content)), **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:  # type: ignore[explicit-override]
        """Ignore clients that hang up or do not trust the certificate."""


@contextmanager
def report_server(folder: Path, *, host: str = "127.0.0.1", tls: bool = True, port: int = 0) -> Iterator[ReportServer]:
    """Serve a control plane; its certificate is for `host`."""
    folder.mkdir(exist_ok=True)
    token_file = folder / "token"
    token_file.write_text(TOKEN)
    certificate, key = folder / "ca.crt", folder / "tls.key"
    write_certificate(certificate, key, host)

    class Handler(_Handler):
        """A handler of this server."""

    with _Server(("127.0.0.1", port), Handler) as server:
        scheme = "https" if tls else "http"
        Handler.plane = plane = ReportServer(f"{scheme}://127.0.0.1:{server.server_port}", str(certificate), token_file)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate, key)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield plane
        finally:
            server.shutdown()
            thread.join()
