"""A proxy before the storage emulator that injects faults; for Google's client it is the store."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.emulator import Emulator

    Fault = int | Literal["pass", "hang", "lose"]
    """A status to answer with; or pass on; never answer; pass on, then drop the connection instead of the answer."""

    Answer = tuple[int, dict[str, str], bytes]


@dataclass
class FaultyProxy:
    """A proxy that takes one of `faults` per request, then `otherwise`; `requests` lists `METHOD path` of all."""

    url: str
    faults: deque[Fault] = field(default_factory=deque)
    otherwise: Fault = "pass"
    requests: list[str] = field(default_factory=list)
    open_requests: set[str] = field(default_factory=set)
    most_at_once: int = 0
    lost_parts: dict[str, Answer] = field(default_factory=dict)
    """Lost responses to parts of uploads: the real service repeats them, the emulator stores the part twice."""

    def take(self, request: str) -> Fault:
        """Note a request and return what to do with it."""
        self.requests.append(request)
        return self.faults.popleft() if self.faults else self.otherwise

    @contextlib.contextmanager
    def counted(self, request: str) -> Iterator[None]:
        """Count a request among the open ones while the block runs."""
        self.open_requests.add(request)
        self.most_at_once = max(self.most_at_once, len(self.open_requests))
        try:
            yield
        finally:
            self.open_requests.discard(request)


@contextlib.contextmanager
def faulty_proxy(emulator: Emulator) -> Iterator[FaultyProxy]:
    """Serve a proxy before `emulator` on its own port on 127.0.0.1."""
    released = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.take(f"{self.command} {self.path}")
            if fault == "hang":
                released.wait()
                self.close_connection = True
            elif isinstance(fault, int):
                self.reply(fault, {"Content-Type": "application/json"}, b'{"error": {"message": "injected fault"}}')
            else:
                part = f"{self.path} {self.headers.get('Content-Range')}"
                with proxy.counted(f"{self.command} {self.path}"):
                    answer = proxy.lost_parts.pop(part, None) or _passed_on(self, body, emulator.url, proxy.url)
                if fault == "pass":
                    self.reply(*answer)
                    return
                self.close_connection = True
                if "upload_id=" in self.path:
                    proxy.lost_parts[part] = answer

        do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815 - the server's names

        def reply(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy = FaultyProxy(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _passed_on(request: BaseHTTPRequestHandler, body: bytes, upstream: str, here: str) -> Answer:
    """Forward the request and return the response, with links to this proxy."""
    connection = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=30)
    try:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        skipped = {"Content-Length", "Transfer-Encoding", "Connection"}
        kept = {name: value.replace(upstream, here) for name, value in answer.getheaders() if name not in skipped}
        content = answer.read()
        if "json" in kept.get("Content-Type", ""):
            content = content.replace(upstream.encode(), here.encode())
        return answer.status, kept, content
    finally:
        connection.close()
