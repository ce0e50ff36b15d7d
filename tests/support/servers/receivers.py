"""Receivers of records: an HTTP server with faults that a test sets, and a real OpenTelemetry Collector before it."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final

import grpc
from cluster.ports import free_port
from cluster.tools import tool
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import (
    LogsServiceServicer,
    add_LogsServiceServicer_to_server,
)
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2 as metrics_pb2
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (
    MetricsServiceServicer,
    add_MetricsServiceServicer_to_server,
)
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

START_LIMIT_S: Final = 60.0
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Request:
    """One request that was accepted."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class HttpReceiver:
    """A server that responds to POST with `status`, or not while it `hangs`; `start` uses the same port again."""

    def __init__(self) -> None:
        self.status = 200
        self.statuses: dict[str, int] = {}  # of single paths
        self.hangs = False
        self.taken: list[Request] = []
        self.refused = 0
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self._released = threading.Event()

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Listen, always at the same port."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.hangs:
                    receiver._released.wait(START_LIMIT_S)
                    return
                status = receiver.statuses.get(self.path, receiver.status)
                if status == 200:
                    receiver.taken.append(Request(self.path, dict(self.headers), body))
                else:
                    receiver.refused += 1
                kind = self.headers["Content-Type"]
                answer = receiver.answer(self.path, body) if status == 200 else b""
                answer = b"" if kind == "application/x-protobuf" else answer or b"{}"
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            @override
            def log_message(self, format: str, *args: Any) -> None:
                """Be quiet."""

        self._server = ThreadingHTTPServer((HOST, self.port), Handler)
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def answer(self, path: str, body: bytes) -> bytes:  # noqa: ARG002 - for subclasses
        """Return the body of the response."""
        return b""

    def stop(self) -> None:
        """Refuse connections from now on."""
        self._released.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(START_LIMIT_S)
            self._server = None


@contextlib.contextmanager
def http_receiver() -> Iterator[HttpReceiver]:
    """A receiver that listens."""
    receiver = HttpReceiver()
    receiver.start()
    try:
        yield receiver
    finally:
        receiver.stop()


class GrpcReceiver(MetricsServiceServicer):
    """A gRPC service that keeps the names of received metrics."""

    def __init__(self) -> None:
        self.metrics: set[str] = set()
        self.port = 0

    @override
    def Export(self, request: Any, context: object) -> Any:
        self.metrics |= {m.name for r in request.resource_metrics for s in r.scope_metrics for m in s.metrics}
        return metrics_pb2.ExportMetricsServiceResponse()


class GrpcLogs(LogsServiceServicer):
    """A gRPC service that accepts all logs."""

    @override
    def Export(self, request: Any, context: object) -> Any:
        return logs_pb2.ExportLogsServiceResponse()


@contextlib.contextmanager
def grpc_receiver() -> Iterator[GrpcReceiver]:
    """A receiver of metrics and logs that listens."""
    receiver, server = GrpcReceiver(), grpc.server(ThreadPoolExecutor(2))
    add_MetricsServiceServicer_to_server(receiver, server)  # type: ignore[no-untyped-call]
    add_LogsServiceServicer_to_server(GrpcLogs(), server)  # type: ignore[no-untyped-call]
    receiver.port = server.add_insecure_port(f"{HOST}:0")
    server.start()
    try:
        yield receiver
    finally:
        server.stop(None).wait()


class Collector:
    """A real OpenTelemetry Collector that forwards everything to `behind` before it responds."""

    def __init__(self, behind: HttpReceiver) -> None:
        self.behind = behind
        self.grpc_port, self.http_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it listens on both ports."""
        passing = {"retry_on_failure": {"enabled": False}, "sending_queue": {"enabled": False}}
        pipeline = {"receivers": ["otlp"], "exporters": ["otlp_http"]}
        config = {
            "receivers": {
                "otlp": {
                    "protocols": {
                        "grpc": {"endpoint": f"{HOST}:{self.grpc_port}"},
                        "http": {"endpoint": f"{HOST}:{self.http_port}"},
                    }
                }
            },
            "exporters": {
                "otlp_http": {"endpoint": self.behind.url, "encoding": "json", "compression": "none", **passing}
            },
            "service": {
                "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "error"}},
                "pipelines": {"metrics": pipeline, "logs": pipeline},
            },
        }
        self._process = subprocess.Popen([str(tool("otelcol")), f"--config=yaml:{json.dumps(config)}"])
        for port in (self.grpc_port, self.http_port):
            self._wait_for(port)

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(START_LIMIT_S)
            self._process = None

    def points(self) -> list[tuple[str, float, int, dict[str, Any], str]]:
        """Return all points so far: name, value, Unix nanoseconds, attributes and unit.

        Of the same one that came twice, as happens when an answer is late, only the first.
        """
        received = []
        for document in self._documents("/v1/metrics"):
            for resource in document["resourceMetrics"]:
                for metric in (metric for scope in resource["scopeMetrics"] for metric in scope["metrics"]):
                    for point in metric["gauge"]["dataPoints"]:
                        value = float(point.get("asDouble", point.get("asInt", 0)))
                        at, attributes = int(point["timeUnixNano"]), plain(point.get("attributes", []))
                        received.append((metric["name"], value, at, attributes, metric.get("unit", "")))
        return [point for place, point in enumerate(received) if point not in received[:place]]

    def resources(self) -> list[dict[str, Any]]:
        """The attributes of every resource that metrics came from."""
        documents = self._documents("/v1/metrics")
        return [plain(each["resource"]["attributes"]) for document in documents for each in document["resourceMetrics"]]

    def logs(self) -> list[dict[str, Any]]:
        """Return all log records so far."""
        return [
            log
            for document in self._documents("/v1/logs")
            for resource in document["resourceLogs"]
            for scope in resource["scopeLogs"]
            for log in scope["logRecords"]
        ]

    def _documents(self, path: str) -> list[Any]:
        return [request.json for request in self.behind.taken if request.path == path]

    def _wait_for(self, port: int) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            assert self._process is not None
            assert self._process.poll() is None, f"the collector ended with {self._process.returncode}"
            try:
                socket.create_connection((HOST, port), timeout=1).close()
            except OSError:
                assert time.monotonic() < deadline, f"the collector does not listen on {port}"
                time.sleep(0.05)
            else:
                return


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    """Yield a collector that is not started yet, with an empty receiver behind it."""
    with http_receiver() as behind:
        made = Collector(behind)
        try:
            yield made
        finally:
            made.kill()


@contextlib.contextmanager
def mute_listener() -> Iterator[int]:
    """Yield the port of a listener that accepts connections and never sends anything."""
    with socket.create_server((HOST, 0)) as listener:
        yield listener.getsockname()[1]


def plain(attributes: list[Any]) -> dict[str, Any]:
    """Return OTLP's attributes as a dictionary."""
    return {each["key"]: next(iter(each["value"].values()), None) for each in attributes}
