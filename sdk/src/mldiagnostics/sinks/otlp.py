"""Records to an OTLP receiver, such as OpenTelemetry Collector, by gRPC or HTTP.

`otlp://host:4317` is gRPC, `otlp+http://host:4318` and `otlp+https://…` are HTTP with protobuf, and `otlp:` uses
OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL. All of them use OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE
and _COMPRESSION, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
Messages are sent with the protocol's stubs, not with the Python exporters: those retry by themselves, log every failure
and do not report whether a failure is retryable (OTLP specification 1.5, "Failures").
"""

from __future__ import annotations

import gzip
import http.client
import os
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.extras import require
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.spool import spooled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

TIMEOUT_S = 4.0
"""Time limit of a request, shorter than that of the process's exit. Its records then wait on disk."""

_RETRYABLE = {
    *("CANCELLED", "DEADLINE_EXCEEDED", "ABORTED", "OUT_OF_RANGE", "UNAVAILABLE", "DATA_LOSS"),
    *("UNAUTHENTICATED", "PERMISSION_DENIED"),  # an administrator may correct that while the job runs
}
_HTTP_RETRYABLE = {401, 403, 408, 429, 502, 503, 504}


@dataclass(frozen=True, slots=True)
class OtlpEndpoint:
    """A receiver; `address` is host:port for gRPC, the base URL for HTTP."""

    address: str
    grpc: bool
    encrypted: bool
    headers: tuple[tuple[str, str], ...] = ()
    certificate: str = ""
    compressed: bool = False
    declared: Mapping[str, str] = field(default_factory=dict)


def maker(url: str) -> SinkMaker:
    """Return the maker for a URL. Raises `ConfigurationError`, `MissingExtraError`."""
    receiver = receiver_of(url, os.environ)
    require("opentelemetry.proto", extra="otlp", needed_for=url)
    if receiver.grpc:
        require("grpc", extra="otlp", needed_for=url)
    return spooled(SinkMaker(url.rstrip(":/"), lambda origin: OtlpSink(receiver, origin)), f"otlp {receiver.address}")


def receiver_of(url: str, env: Mapping[str, str]) -> OtlpEndpoint:
    """Return the receiver of a URL and the environment. Raises `ConfigurationError`."""
    scheme, _, rest = url.partition(":")
    grpc = scheme == "otlp"
    address = f"{'https' if scheme == 'otlp+https' else 'http'}://{rest.lstrip('/')}"
    if grpc and not rest.strip("/"):
        grpc = env.get("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc") == "grpc"
        address = env.get("OTEL_EXPORTER_OTLP_ENDPOINT") or f"http://localhost:{4317 if grpc else 4318}"
    parts = urlsplit(address if "://" in address else f"http://{address}")
    if not parts.hostname or not _is_port(parts):
        raise ConfigurationError(f"{url!r}: no host or port; write otlp://host:4317 or otlp+http://host:4318")
    return OtlpEndpoint(
        address=parts.netloc if grpc else parts.geturl().rstrip("/"),
        grpc=grpc,
        encrypted=parts.scheme == "https",
        headers=tuple(_pairs(env.get("OTEL_EXPORTER_OTLP_HEADERS", "")).items()),
        certificate=env.get("OTEL_EXPORTER_OTLP_CERTIFICATE", ""),
        compressed=env.get("OTEL_EXPORTER_OTLP_COMPRESSION") == "gzip",
        declared={
            **_pairs(env.get("OTEL_RESOURCE_ATTRIBUTES", "")),
            **({"service.name": env["OTEL_SERVICE_NAME"]} if env.get("OTEL_SERVICE_NAME") else {}),
        },
    )


class OtlpSink:
    """Exports each batch, metrics first, in requests of at most `TIMEOUT_S`."""

    pace = BatchPolicy(records=100, gather_s=0.2)
    durable = False

    def __init__(self, receiver: OtlpEndpoint, origin: Origin) -> None:
        self._receiver = receiver
        self._origin = origin
        self._resource: Any = None
        self._exporter: _Exporter | None = None

    def open(self) -> None:
        """Create the exporter; connects with the first batch."""
        from mldiagnostics.sinks.otlp_messages import resource_of  # noqa: PLC0415 - imported by the sink's own thread

        self._resource = resource_of(self._origin, self._receiver.declared)
        self._exporter = _GrpcExporter(self._receiver) if self._receiver.grpc else _HttpExporter(self._receiver)

    def write(self, batch: Sequence[Record]) -> None:
        """Export the batch. If the receiver accepts metrics only, logs are dropped."""
        from mldiagnostics.sinks.otlp_messages import logs_request, metrics_request  # noqa: PLC0415 - the same

        if self._exporter is None:
            raise SinkUnavailable("not open yet")
        metrics, logs = metrics_request(self._resource, batch), logs_request(self._resource, batch)
        if metrics is not None:
            rejected = self._exporter.metrics(metrics).partial_success
            if rejected.rejected_data_points:
                warn_once(
                    "otlp-partial",
                    f"sink otlp: {self._receiver.address} rejected {rejected.rejected_data_points} points: "
                    f"{rejected.error_message}; correct the receiver's limits or these metrics",
                )
        if logs is not None:
            try:
                self._exporter.logs(logs)
            except SinkRefused as error:
                if metrics is None:
                    raise
                warn_once(
                    "otlp-logs",
                    f"sink otlp: only metrics are sent, logs were rejected: {error}",
                )

    def flush(self) -> None:
        """Do nothing: no records are buffered."""

    def close(self) -> None:
        """Close the connection."""
        if self._exporter is not None:
            self._exporter.close()


class _Exporter(Protocol):
    """A transport; raises `SinkUnavailable` for retryable errors, else `SinkRefused`."""

    def metrics(self, request: Any) -> Any: ...
    def logs(self, request: Any) -> Any: ...
    def close(self) -> None: ...


class _GrpcExporter:
    def __init__(self, receiver: OtlpEndpoint) -> None:
        import grpc  # noqa: PLC0415 - imported by the sink's own thread
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
        return self._export(self._metrics, request)

    def logs(self, request: Any) -> Any:
        return self._export(self._logs, request)

    def close(self) -> None:
        self._channel.close()

    def _export(self, stub: Any, request: Any) -> Any:
        try:
            return stub.Export(request, timeout=TIMEOUT_S, metadata=self._headers)
        except self._error as error:
            code, details = error.code().name, error.details()  # type: ignore[attr-defined]
            message = f"{self._address}: {code}: {details}"
            raise (SinkUnavailable if code in _RETRYABLE else SinkRefused)(message) from error


class _HttpExporter:
    def __init__(self, receiver: OtlpEndpoint) -> None:
        self._receiver = receiver
        context = ssl.create_default_context(cafile=receiver.certificate or None) if receiver.encrypted else None
        handlers = [urllib.request.HTTPSHandler(context=context)] if context else []
        self._opener = urllib.request.build_opener(*handlers)

    def metrics(self, request: Any) -> Any:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (  # noqa: PLC0415 - imported by the sink's own thread
            ExportMetricsServiceResponse,
        )

        return ExportMetricsServiceResponse.FromString(self._post("/v1/metrics", request))

    def logs(self, request: Any) -> Any:
        return self._post("/v1/logs", request)

    def close(self) -> None:
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
                f"{url}: HTTP {error.code} {error.reason}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SinkUnavailable(f"{url}: {error}") from error


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _pairs(text: str) -> dict[str, str]:
    """Parse an OTEL variable: `key=value,key=value` with percent-encoded values."""
    split = (item.partition("=") for item in text.split(",") if "=" in item)
    return {key.strip(): unquote(value.strip()) for key, _, value in split if key.strip()}


def _read(certificate: str) -> bytes | None:
    if not certificate:
        return None
    try:
        with open(certificate, "rb") as file:  # noqa: PTH123 - one line
            return file.read()
    except OSError as error:
        raise SinkUnavailable(
            f"OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read {certificate!r}: {error.strerror}"
        ) from error
