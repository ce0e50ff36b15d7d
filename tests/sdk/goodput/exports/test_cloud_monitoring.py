"""Google's client writes to a server that speaks Cloud Monitoring's API and keeps to its rules."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING

import grpc
import pytest
from mldiagnostics.diagnostics import counts
from mldiagnostics.goodput import google_cloud
from mldiagnostics.goodput.exports import cloud_monitoring
from mldiagnostics.goodput.exports.cloud_monitoring import MIN_INTERVAL_S, CloudMonitoringSink, maker
from mldiagnostics.goodput_utils import GCPOptions
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import SinkRefused, SinkUnavailable
from support.records import DEADLINE_S, RUN, origin
from support.servers.monitoring_server import monitoring_server
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.servers.monitoring_server import MonitoringServer

OPTIONS = GCPOptions(project_id="my-project", location="us-east5-b", acc_type="TPU-v6e", cluster_name="big")
PREFIX = "compute.googleapis.com/workload/"


@pytest.fixture
def server() -> Iterator[MonitoringServer]:
    with monitoring_server() as made:
        yield made


def made_sink(server: MonitoringServer, options: GCPOptions = OPTIONS) -> CloudMonitoringSink:
    sink = CloudMonitoringSink(server.url.removeprefix("cloud-monitoring:"), options, origin())
    sink.open()
    return sink


def record(name: str = "goodput_time", value: float = 1.5, *, t: float | None = None, **labels: str) -> Record:
    return Record("metric", time.time() if t is None else t, name, value, None, labels)


def test_a_point_has_type_labels_resource_and_value(server: MonitoringServer) -> None:
    t = time.time()
    made_sink(server).write(
        [record(t=t, goodput_source="TOTAL"), record("disruptions", 2.0), record("performance", 0.5)]
    )
    resource = (
        "compute.googleapis.com/Workload",
        (("location", "us-east5-b"), ("replica_id", "0"), ("workload_id", RUN)),
    )
    machine = {"accelerator_type": "TPU-v6e", "cluster_name": "big"}
    assert server.projects == {"projects/my-project"}
    assert {each.resource for each in server.written} == {resource}
    assert [(each.name, each.labels, each.kind, each.value) for each in server.written] == [
        (f"{PREFIX}goodput_time", {"goodput_source": "TOTAL", **machine}, "double_value", 1.5),
        (f"{PREFIX}disruptions", machine, "int64_value", 2),
        (f"{PREFIX}performance", {}, "double_value", 0.5),
    ]
    assert server.written[0].at == pytest.approx(t, abs=1e-3)


def test_many_series_are_split_into_requests(server: MonitoringServer) -> None:
    made_sink(server).write([record(n=str(number)) for number in range(450)])
    assert server.requests == [200, 200, 50]
    assert not server.faults


def test_of_a_series_only_the_last_point_is_written(server: MonitoringServer) -> None:
    made_sink(server).write([record(value=float(value)) for value in range(3)])
    assert [each.value for each in server.written] == [2.0]


def test_points_of_a_series_keep_the_minimum_interval(server: MonitoringServer) -> None:
    sink = made_sink(server)
    sink.write([record(value=1.0), record("performance", 1.0)])
    sink.write([record(value=2.0)])
    assert not server.faults
    first, _, second = server.written
    assert second.at - first.at >= MIN_INTERVAL_S - 0.001


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (grpc.StatusCode.UNAVAILABLE, SinkUnavailable, "HTTP 503"),
        (grpc.StatusCode.PERMISSION_DENIED, SinkUnavailable, "roles/monitoring.metricWriter"),
        (grpc.StatusCode.INVALID_ARGUMENT, SinkRefused, "HTTP 400"),
    ],
)
def test_the_status_decides_about_a_retry(
    server: MonitoringServer, status: grpc.StatusCode, error: type[Exception], message: str
) -> None:
    sink = made_sink(server)
    server.status = status
    with pytest.raises(error, match=message):
        sink.write([record()])
    server.status = None
    sink.write([record(value=3.0)])
    assert [each.value for each in server.written] == [3.0]


METADATA = {
    "/computeMetadata/v1/project/project-id": "meta-project",
    "/computeMetadata/v1/instance/zone": "projects/1/zones/us-central2-b",
    "/computeMetadata/v1/instance/machine-type": "projects/1/machineTypes/ct6e-standard-4t",
    "/computeMetadata/v1/instance/attributes/cluster-name": "meta-cluster",
}


class _Metadata(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = METADATA.get(self.path, "").encode()
        self.send_response(200 if body else 404)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Metadata)
    thread = Thread(target=served.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{served.server_port}")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nowhere")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.setattr(cloud_monitoring, "_LOOKUP_TIMEOUT_S", DEADLINE_S)
    monkeypatch.setattr(google_cloud, "_LOOK_UP_S", DEADLINE_S)
    monkeypatch.setattr(google_cloud.get_gcp_metadata, "__defaults__", (DEADLINE_S, 3))
    yield
    served.shutdown()
    served.server_close()
    thread.join(DEADLINE_S)


@pytest.mark.usefixtures("metadata")
def test_missing_options_are_read_from_the_machine(server: MonitoringServer) -> None:
    made_sink(server, GCPOptions()).write([record()])
    [point] = server.written
    assert server.projects == {"projects/meta-project"}
    assert point.labels == {"accelerator_type": "TPU-v6e", "cluster_name": "meta-cluster"}
    assert dict(point.resource[1])["location"] == "us-central2-b"


def test_outside_google_cloud_it_is_disabled_with_one_warning(
    server: MonitoringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:1")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nowhere")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    before = counts().get("cloud-monitoring", 0)
    sink = made_sink(server, GCPOptions())
    sink.write([record()])
    sink.flush()
    assert counts()["cloud-monitoring"] == before + 1
    monkeypatch.setattr("mldiagnostics.goodput.exports.cloud_monitoring._RETRY_S", 0.0)  # now it is time to
    sink.flush()
    assert counts()["cloud-monitoring"] == before + 2
    assert not server.written
    assert not any(key.startswith("sink-refused cloud-monitoring") for key in counts())


def test_without_credentials_it_is_disabled_and_retries(
    server: MonitoringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("CLOUDSDK_CONFIG", "/nowhere")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    before = counts().get("cloud-monitoring", 0)
    sink = CloudMonitoringSink(f"127.0.0.1:{server.port}", OPTIONS, origin())
    sink.open()
    sink.write([record()])
    monkeypatch.setattr("mldiagnostics.goodput.exports.cloud_monitoring._RETRY_S", 0.0)
    sink.flush()
    assert not server.written
    assert counts()["cloud-monitoring"] == before + 2


def test_a_pipeline_writes_its_metrics(server: MonitoringServer) -> None:
    recording = RecordPipeline(origin(), [maker(server.url, OPTIONS)], buffer=Buffer())
    recording.append("metric", "goodput_time", value=4.0)
    recording.append("event", "goodput_report", payload={"no": "metric"})
    assert recording.close(DEADLINE_S).complete
    assert [each.value for each in server.written] == [4.0]
