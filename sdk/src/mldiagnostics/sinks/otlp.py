"""Records to an OTLP receiver, such as OpenTelemetry Collector, by gRPC or HTTP.

`otlp://host:4317` is gRPC, `otlp+http://host:4318` and `otlp+https://…` are HTTP with protobuf, and `otlp:` uses
OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_PROTOCOL. All of them use OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE
and _COMPRESSION, OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.extras import require
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.otlp_endpoint import endpoint_of
from mldiagnostics.sinks.spool import spooled
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record
    from mldiagnostics.sinks.otlp_endpoint import OtlpEndpoint
    from mldiagnostics.sinks.otlp_exporters import OtlpExporter


def maker(url: str) -> SinkMaker:
    """Return the maker for a URL. Raises `ConfigurationError`, `MissingExtraError`."""
    receiver = endpoint_of(url, os.environ)
    require("opentelemetry.proto", extra="otlp", needed_for=url)
    if receiver.grpc:
        require("grpc", extra="otlp", needed_for=url)
    return spooled(SinkMaker(url.rstrip(":/"), lambda origin: OtlpSink(receiver, origin)), f"otlp {receiver.address}")


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
                    f"sink otlp: {self._receiver.address} rejected {counted(rejected.rejected_data_points, 'point')}: "
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
