"""Exporters of OTLP messages by gRPC and HTTP.

They use the protocol's stubs, not the Python exporters: those retry by themselves, log every failure and do not report
whether a failure is retryable (OTLP specification 1.5, "Failures").
"""

from __future__ import annotations

import gzip
import http.client
import ssl
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Protocol

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse

from mldiagnostics.pipeline.sink import SinkRefused, SinkUnavailable

if TYPE_CHECKING:
    from mldiagnostics.sinks.otlp_endpoint import OtlpEndpoint

TIMEOUT_S = 4.0
"""Time limit of a request, shorter than that of the process's exit. Its records then wait on disk."""

_RETRYABLE = {
    *("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"),
    *("UNAUTHENTICATED", "PERMISSION_DENIED"),  # an administrator may correct that while the job runs
}
_HTTP_RETRYABLE = {401, 403, 408, 429, 502, 503, 504}


class OtlpExporter(Protocol):
    """A transport; raises `SinkUnavailable` for retryable errors, else `SinkRefused`."""

    def metrics(self, request: Any) -> Any:
        """Send an `ExportMetricsServiceRequest` and return the response."""

    def logs(self, request: Any) -> Any:
        """Send an `ExportLogsServiceRequest`."""

    def close(self) -> None:
        """Close the connection."""


class GrpcExporter:
    """Exports by gRPC."""

    def __init__(self, receiver: OtlpEndpoint) -> None:
        import grpc  # noqa: PLC0415 - not needed for HTTP
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2_grpc import LogsServiceStub  # noqa: PLC0415
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2_grpc import (  # noqa: PLC0415
            MetricsServiceStub,
        )

        options = [("grpc.max_reconnect_backoff_ms", 5000)]
        compression = grpc.Compression.Gzip if receiver.compressed else grpc.Compression.NoCompression
        if receiver.encrypted:
            credentials = grpc.ssl_channel_credentials(_read(receiver.certificate))
            self._channel = grpc.secure_channel(receiver.address, credentials, options, compression)
        else:
            self._channel = grpc.insecure_channel(receiver.address, options, compression)
        self._address = receiver.address
        self._headers = tuple((key.lower(), value) for key, value in receiver.headers)
        self._metrics: Any = MetricsServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._logs: Any = LogsServiceStub(self._channel)  # type: ignore[no-untyped-call]
        self._error: type[Exception] = grpc.RpcError

    def metrics(self, request: Any) -> Any:
        """See `OtlpExporter.metrics`."""
        return self._export(self._metrics, request)

    def logs(self, request: Any) -> Any:
        """See `OtlpExporter.logs`."""
        return self._export(self._logs, request)

    def close(self) -> None:
        """See `OtlpExporter.close`."""
        self._channel.close()

    def _export(self, stub: Any, request: Any) -> Any:
        try:
            return stub.Export(request, timeout=TIMEOUT_S, metadata=self._headers)
        except self._error as error:
            code, details = error.code().name, error.details()  # type: ignore[attr-defined]
            message = f"{self._address}: {code}: {details}"
            raise (SinkUnavailable if code in _RETRYABLE else SinkRefused)(message) from error


class HttpExporter:
    """Exports by HTTP with protobuf."""

    def __init__(self, receiver: OtlpEndpoint) -> None:
        self._receiver = receiver
        context = _tls(receiver.certificate) if receiver.encrypted else None
        handlers = [urllib.request.HTTPSHandler(context=context)] if context else []
        self._opener = urllib.request.build_opener(*handlers)

    def metrics(self, request: Any) -> Any:
        """See `OtlpExporter.metrics`."""
        return ExportMetricsServiceResponse.FromString(self._post("/v1/metrics", request))

    def logs(self, request: Any) -> Any:
        """See `OtlpExporter.logs`."""
        return self._post("/v1/logs", request)

    def close(self) -> None:
        """See `OtlpExporter.close`."""
        self._opener.close()

    def _post(self, path: str, request: Any) -> bytes:
        url = self._receiver.address + path
        data = request.SerializeToString()
        headers = {"Content-Type": "application/x-protobuf", **dict(self._receiver.headers)}
        if self._receiver.compressed:
            data, headers["Content-Encoding"] = gzip.compress(data, 1), "gzip"
        try:
            with self._opener.open(urllib.request.Request(url, data, headers), timeout=TIMEOUT_S) as response:  # noqa: S310 - http(s)
                content: bytes = response.read()
                return content
        except urllib.error.HTTPError as error:
            is_retryable = error.code in _HTTP_RETRYABLE
            raise (SinkUnavailable if is_retryable else SinkRefused)(
                f"{url}: HTTP {error.code} {error.reason}{_cure(error.code)}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SinkUnavailable(f"{url}: {error}") from error


def _cure(code: int) -> str:
    return "; set OTEL_EXPORTER_OTLP_HEADERS to its credentials" if code in {401, 403} else ""


def _tls(certificate: str) -> ssl.SSLContext:
    """Return a context that trusts the system's authorities, or those of the file."""
    try:
        return ssl.create_default_context(cafile=certificate or None)
    except OSError as error:  # also of a file that is not PEM
        raise _unreadable(certificate, error) from error


def _read(certificate: str) -> bytes | None:
    if not certificate:
        return None
    try:
        with open(certificate, "rb") as file:  # noqa: PTH123 - one line
            return file.read()
    except OSError as error:
        raise _unreadable(certificate, error) from error


def _unreadable(certificate: str, error: OSError) -> SinkUnavailable:
    problem = error.strerror or error
    return SinkUnavailable(f"OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read {certificate!r}: {problem}")
