"""`gcp_metrics` by itself, as programs use it that send series of their own."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from mldiagnostics.gcp_metrics import GCPMetrics, ValueType
from support.servers.monitoring_server import monitoring_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.monitoring_server import MonitoringServer


@pytest.fixture
def server() -> Iterator[MonitoringServer]:
    with monitoring_server() as made:
        yield made


def client(server: MonitoringServer) -> Any:
    from google.cloud.monitoring_v3 import MetricServiceClient
    from google.cloud.monitoring_v3.services.metric_service.transports import MetricServiceGrpcTransport

    channel = grpc.insecure_channel(f"127.0.0.1:{server.port}")
    return MetricServiceClient(transport=MetricServiceGrpcTransport(channel=channel))


def metric(value: object, value_type: ValueType, **labels: str) -> dict[str, Any]:
    return {
        "metric_type": "custom.googleapis.com/mine",
        "value": value,
        "value_type": value_type,
        "metric_labels": labels,
        "resource_type": "global",
        "resource_labels": {"project_id": "p"},
    }


def test_the_exporter_sends_one_point_of_each_series_with_the_current_time(server: MonitoringServer) -> None:
    before = time.time()
    GCPMetrics("p", client=client(server)).send_metrics(
        [
            metric(value=True, value_type=ValueType.BOOL, n="0"),
            metric(3, ValueType.INT, n="1"),
            metric(0.5, ValueType.DOUBLE, n="2"),
            metric("text", ValueType.STRING, n="3"),
        ]
    )
    assert [(each.kind, each.value) for each in server.written] == [
        ("bool_value", True),
        ("int64_value", 3),
        ("double_value", 0.5),
        ("string_value", "text"),
    ]
    assert server.projects == {"projects/p"}
    assert all(before - 0.001 <= each.at <= time.time() + 0.001 for each in server.written)


def test_labels_may_be_left_out(server: MonitoringServer) -> None:
    without = metric(1.0, ValueType.DOUBLE)
    del without["metric_labels"]
    GCPMetrics("p", client=client(server)).send_metrics([without])
    assert [each.labels for each in server.written] == [{}]


def test_a_series_has_the_peers_arguments(server: MonitoringServer) -> None:
    made = GCPMetrics("p", client=client(server)).create_time_series(
        "custom.googleapis.com/mine", 1.5, ValueType.DOUBLE, {"a": "b"}, "global", {"project_id": "p"}, 100, 500
    )
    [point] = made.points
    assert (made.metric.type, dict(made.metric.labels), made.resource.type) == (
        "custom.googleapis.com/mine",
        {"a": "b"},
        "global",
    )
    assert (point.value.double_value, point.interval.end_time.timestamp()) == (1.5, pytest.approx(100.0000005))


def test_a_rejection_is_logged_and_not_raised(server: MonitoringServer, caplog: pytest.LogCaptureFixture) -> None:
    server.status = grpc.StatusCode.INVALID_ARGUMENT
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        GCPMetrics("p", client=client(server)).send_metrics([metric(1.0, ValueType.DOUBLE)])
    assert "Cloud Monitoring, project p: points rejected" in caplog.text
