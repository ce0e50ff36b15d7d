"""Records as OTLP messages: metrics are points of gauges, all others log records.

A point has the record's time and its labels as attributes, and `device` if there is one number per device. As an
attribute, the step would make every point a series; it is a gauge `training_step` with the same time and labels.
Definitions: opentelemetry-proto, `metrics/v1/metrics.proto` and `logs/v1/logs.proto`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs, SeverityNumber
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.records import is_goodput

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

STEP = "training_step"
"""Name of the gauge of steps, as in Google's SDK."""

_SCOPE = InstrumentationScope(name="mldiagnostics")
_MAX_INT64, _MAX_UINT64 = 2**63 - 1, 2**64 - 1


def resource_of(origin: Origin, declared: Mapping[str, str]) -> Resource:
    """Return the process as a resource with the user's `declared` attributes."""
    own = {
        "host.name": origin.host,
        "service.instance.id": origin.incarnation,
        "mldiagnostics.run.id": origin.run_id,
        "mldiagnostics.run.name": origin.name,
        "mldiagnostics.attempt": origin.attempt,
        "mldiagnostics.rank": origin.rank,
        **({} if origin.slice is None else {"mldiagnostics.slice": origin.slice}),
        **({"k8s.namespace.name": origin.namespace} if origin.namespace else {}),
    }
    return Resource(attributes=_attributes({"service.name": origin.name, **declared, **own}))


def metrics_request(resource: Resource, batch: Sequence[Record]) -> ExportMetricsServiceRequest | None:
    """Return the batch's metrics, None if it has none."""
    metrics: dict[str, Metric] = {}
    steps: dict[tuple[float, int, tuple[tuple[str, str], ...]], None] = {}
    yield_gil = GilYielder()
    for record in batch:
        if record.kind == "metric" and record.value is not None:
            name = _text(record.name)
            metric = metrics.setdefault(name, Metric(name=name, unit=record.unit))
            metric.gauge.data_points.extend(_points(record))
            if record.step is not None:
                steps[record.t, record.step, tuple(record.labels.items())] = None
            yield_gil()
    if not metrics:
        return None
    if steps:
        gauge = metrics.setdefault(STEP, Metric(name=STEP, unit="1"))
        for t, step, labels in steps:
            gauge.gauge.data_points.append(
                NumberDataPoint(
                    time_unix_nano=_nanoseconds(t), as_int=_int64(step), attributes=_attributes(dict(labels))
                )
            )
            yield_gil()
    scope = ScopeMetrics(scope=_SCOPE, metrics=metrics.values())
    return ExportMetricsServiceRequest(resource_metrics=[ResourceMetrics(resource=resource, scope_metrics=[scope])])


def logs_request(resource: Resource, batch: Sequence[Record]) -> ExportLogsServiceRequest | None:
    """Return the other records except heartbeats and goodput; None without any."""
    yield_gil = GilYielder()
    logs = []
    for record in batch:
        if record.kind not in {"metric", "heartbeat"} and not is_goodput(record):
            logs.append(_log(record))
            yield_gil()
    if not logs:
        return None
    scope = ScopeLogs(scope=_SCOPE, log_records=logs)
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource, scope_logs=[scope])])


def _points(record: Record) -> list[NumberDataPoint]:
    at = _nanoseconds(record.t)
    if isinstance(record.value, float):
        return [NumberDataPoint(time_unix_nano=at, as_double=record.value, attributes=_attributes(record.labels))]
    return [
        NumberDataPoint(
            time_unix_nano=at, as_double=number, attributes=_attributes({**record.labels, "device": device})
        )
        for device, number in enumerate(record.value or ())
    ]


def _log(record: Record) -> LogRecord:
    payload = record.payload or {}
    message = payload.get("message")
    body = message if isinstance(message, str) and len(payload) == 1 else dict(payload)
    attributes: dict[str, Any] = {**record.labels, "mldiagnostics.kind": record.kind}
    if record.step is not None:
        attributes["step"] = record.step
    if record.value is not None:
        attributes["value"] = record.value
    is_warning = record.kind == "drop" or (record.kind == "phase" and record.name.lower() == "failed")
    severity, text = (
        (SeverityNumber.SEVERITY_NUMBER_WARN, "WARN") if is_warning else (SeverityNumber.SEVERITY_NUMBER_INFO, "INFO")
    )
    at = _nanoseconds(record.t)
    return LogRecord(
        time_unix_nano=at,
        observed_time_unix_nano=at,
        severity_number=severity,
        severity_text=text,
        body=_any(body or record.name),
        attributes=_attributes(attributes),
        event_name=_text(record.name),
    )


def _attributes(values: Mapping[str, Any]) -> list[KeyValue]:
    return [KeyValue(key=_text(key), value=_any(value)) for key, value in values.items()]


def _any(value: Any) -> AnyValue:
    """Return a JSON value as `AnyValue`; null is an empty one."""
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=_int64(value))
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list | tuple):
        return AnyValue(array_value=ArrayValue(values=map(_any, value)))
    if isinstance(value, dict):
        return AnyValue(kvlist_value=KeyValueList(values=_attributes(value)))
    return AnyValue() if value is None else AnyValue(string_value=_text(str(value)))


def _text(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _int64(number: int) -> int:
    return max(-_MAX_INT64, min(number, _MAX_INT64))


def _nanoseconds(t: float) -> int:
    return max(0, min(round(t * 1_000_000) * 1000, _MAX_UINT64))
