"""A proxy before a server of objects that injects faults; for a client it is the store."""

from __future__ import annotations

import contextlib
import http.client
import ssl
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, ClassVar, Literal
from urllib.parse import urlsplit

from support.servers.local_http import LocalServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.emulator import Emulator
    from support.servers.object_servers import ObjectServer

    Answer = tuple[int, dict[str, str], bytes]

    Fault = int | Answer | Literal["pass", "slow", "hang", "lose"]
    """A status or response to answer with; or pass on, perhaps with pauses in the response; never answer; pass on, then
    drop the connection instead of the answer."""

SLOW_PIECES, SLOW_PAUSE_S = 8, 0.05
"""A slow response comes in so many pieces, with a pause before each."""


@dataclass
class FaultyProxy:
    """A proxy that takes one of `faults` per request, then `otherwise`; `requests` lists `METHOD path` of all."""

    url: str
    faults: deque[Fault] = field(default_factory=deque)
    otherwise: Fault = "pass"
    requests: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    """Of the last request, names in lower case."""
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


@dataclass(frozen=True)
class FaultyBucket:
    """A bucket behind a proxy, which this process and its commands use.

    Attributes:
        scheme: `s3` or `az`.
        url: A prefix in the bucket.
        proxy: The proxy.
        server: The server behind it.
    """

    scheme: str
    url: str
    proxy: FaultyProxy
    server: ObjectServer


@contextlib.contextmanager
def faulty_proxy(server: Emulator | ObjectServer, *, tls: tuple[Path, Path] | None = None) -> Iterator[FaultyProxy]:
    """Serve a proxy before `server` on its own port on 127.0.0.1.

    Args:
        server: The server.
        tls: Files of a certificate and its key, for `https://`.
    """

    class Handler(_Handler):
        """A handler of this proxy."""

    http_server = LocalServer(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        http_server.socket = context.wrap_socket(http_server.socket, server_side=True, do_handshake_on_connect=False)
    Handler.proxy = FaultyProxy(f"{'https' if tls else 'http'}://127.0.0.1:{http_server.server_port}")
    Handler.upstream, Handler.released = server.url, threading.Event()
    thread = threading.Thread(target=http_server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield Handler.proxy
    finally:
        Handler.released.set()
        http_server.shutdown()
        thread.join()
        http_server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: ClassVar[FaultyProxy]
    upstream: ClassVar[str]
    released: ClassVar[threading.Event]

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.proxy.headers = {name.lower(): value for name, value in self.headers.items()}
        fault = self.proxy.take(f"{self.command} {self.path}")
        if fault == "hang":
            self.released.wait()
            self.close_connection = True
        elif isinstance(fault, tuple):
            self.reply(*fault)
        elif isinstance(fault, int):
            self.reply(fault, {"Content-Type": "application/json"}, b'{"error": {"message": "injected fault"}}')
        else:
            self.pass_on(body, fault)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = answer  # noqa: N815 - the server's names

    def pass_on(self, body: bytes, fault: Fault) -> None:
        proxy, part = self.proxy, f"{self.path} {self.headers.get('Content-Range')}"
        with proxy.counted(f"{self.command} {self.path}"):
            answer = proxy.lost_parts.pop(part, None) or _passed_on(self, body, self.upstream, proxy.url)
        if fault != "lose":
            self.reply(*answer, pieces=SLOW_PIECES if fault == "slow" else 1)
            return
        self.close_connection = True
        if "upload_id=" in self.path:
            proxy.lost_parts[part] = answer

    def reply(self, status: int, headers: dict[str, str], content: bytes, *, pieces: int = 1) -> None:
        self.send_response(status)
        has_content = self.command != "HEAD"
        if has_content:  # the length of a response to HEAD is that of the content which it does not have
            headers = {name: value for name, value in headers.items() if name.lower() != "content-length"}
            headers["Content-Length"] = str(len(content))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        size = max(-(-len(content) // pieces), 1)
        for start in range(0, len(content), size) if has_content else ():
            if pieces > 1:
                self.released.wait(SLOW_PAUSE_S)
            self.wfile.write(content[start : start + size])

    def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]
        """Keep the test's output clean."""


def _passed_on(request: BaseHTTPRequestHandler, body: bytes, upstream: str, here: str) -> Answer:
    """Forward the request and return the response, with links to this proxy."""
    connection = http.client.HTTPConnection(urlsplit(upstream).netloc, timeout=30)
    try:
        headers = {name: value for name, value in request.headers.items() if name != "Host"}
        connection.request(request.command, request.path, body, headers)
        answer = connection.getresponse()
        skipped = {"Transfer-Encoding", "Connection"}
        kept = {name: value.replace(upstream, here) for name, value in answer.getheaders() if name not in skipped}
        content = answer.read()
        if "json" in kept.get("Content-Type", ""):
            content = content.replace(upstream.encode(), here.encode())
        return answer.status, kept, content
    finally:
        connection.close()
