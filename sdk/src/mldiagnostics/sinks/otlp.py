"""Records to an OTLP receiver, such as OpenTelemetry Collector, by gRPC or HTTP.

`otlp://host:4317` is gRPC, `otlp+http://host:4318` and `otlp+https://…` are HTTP with protobuf, and `otlp:` uses
OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL. All of them use OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE
and _COMPRESSION, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
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
    from mldiagnostics.sinks.otlp_exporters import OtlpExporter


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
    """Exports each batch, metrics first, in requests of limited time."""

    batch_policy = BatchPolicy(records=100, gather_s=0.2)
    durable = False

    def __init__(self, receiver: OtlpEndpoint, origin: Origin) -> None:
        self._receiver = receiver
        self._origin = origin
        self._resource: Any = None
        self._exporter: OtlpExporter | None = None

    def open(self) -> None:
        """Create the exporter; connects with the first batch."""
        from mldiagnostics.sinks.otlp_exporters import GrpcExporter, HttpExporter  # noqa: PLC0415 - in the sink's thread
        from mldiagnostics.sinks.otlp_messages import resource_of  # noqa: PLC0415 - the same

        self._resource = resource_of(self._origin, self._receiver.declared)
        self._exporter = GrpcExporter(self._receiver) if self._receiver.grpc else HttpExporter(self._receiver)

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


def _is_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


def _pairs(text: str) -> dict[str, str]:
    """Parse an OTEL variable: `key=value,key=value` with percent-encoded values."""
    split = (item.partition("=") for item in text.split(",") if "=" in item)
    return {key.strip(): unquote(value.strip()) for key, _, value in split if key.strip()}
