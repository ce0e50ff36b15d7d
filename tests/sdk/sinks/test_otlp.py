"""A real OpenTelemetry Collector gets every point with its time, also after its outages."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import SinkRefused, SinkUnavailable, sink_maker
from mldiagnostics.sinks.otlp_endpoint import OtlpEndpoint, endpoint_of
from support.records import DEADLINE_S, ListSink, eventually, origin, run_program
from support.servers.receivers import collector, http_receiver, mute_listener

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mldiagnostics.sinks import Sink
    from support.servers.receivers import Collector

T = 1_700_000_000.25


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


@pytest.fixture
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of a request that a busy machine keeps."""
    monkeypatch.setattr("mldiagnostics.sinks.otlp_exporters.TIMEOUT_S", DEADLINE_S)


@pytest.fixture
def running() -> Iterator[Collector]:
    """A running collector."""
    with collector() as receiver:
        receiver.start()
        yield receiver


def urls(receiver: Collector) -> dict[str, str]:
    return {"grpc": f"otlp://127.0.0.1:{receiver.grpc_port}", "http": f"otlp+http://127.0.0.1:{receiver.http_port}"}


def create_sink(url: str, incarnation: str = "00000001") -> Sink:
    sink = sink_maker(url).make(origin(incarnation=incarnation))
    sink.open()
    return sink


def losses(start: int, count: int = 3) -> list[Record]:
    return [Record("metric", T + number, "loss", float(number), step=number) for number in range(start, start + count)]


def at(t: float) -> int:
    return round(t * 1e6) * 1000


def steps_received(receiver: Collector) -> list[int]:
    return [int(value) for name, value, *_ in receiver.points() if name == "loss"]


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_every_point_arrives_with_its_time_unit_and_labels(running: Collector, protocol: str) -> None:
    recording = RecordPipeline(origin(), [sink_maker(urls(running)[protocol])], buffer=Buffer())
    for step in range(20):
        recording.append("metric", "step_time", value=step / 8, step=step, labels={"split": "eval"}, t=T + step)
    recording.append("metric", "hbm_utilization", value=[10.0, 20.0], t=T)
    recording.append("event", "note", payload={"message": "saved"}, t=T, step=3)
    closed = recording.close(DEADLINE_S)
    assert closed.complete
    assert not closed.dropped
    points = running.points()
    assert [point for point in points if point[0] == "step_time"] == [
        ("step_time", step / 8, at(T + step), {"split": "eval"}, "s") for step in range(20)
    ]
    assert [point for point in points if point[0] == "hbm_utilization"] == [
        ("hbm_utilization", 10.0, at(T), {"device": "0"}, "%"),
        ("hbm_utilization", 20.0, at(T), {"device": "1"}, "%"),
    ]
    assert [(value, when) for name, value, when, *_ in points if name == "training_step"] == [
        (float(step), at(T + step)) for step in range(20)
    ]
    assert {(each["service.name"], each["mldiagnostics.rank"]) for each in running.resources()} == {("test", "0")}
    [log] = running.logs()
    assert log["body"] == {"stringValue": "saved"}
    assert log["eventName"] == "note"
    assert int(log["timeUnixNano"]) == at(T)


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_a_late_and_restarted_collector_gets_all_records_in_order(protocol: str) -> None:
    with collector() as late:
        sink = create_sink(urls(late)[protocol])
        sink.write(losses(0))
        late.start()
        eventually(lambda: _flushed(sink), "the collector receives the spooled records")
        sink.write(losses(3))
        late.kill()
        sink.write(losses(6))
        sink.close()
        late.start()
        successor = create_sink(urls(late)[protocol], incarnation="00000002")
        successor.write(losses(9))
        eventually(lambda: _flushed(successor), "the collector receives records of another process")
        successor.close()
        steps = steps_received(late)
        assert sorted(steps) == list(range(12))
        assert [step for step in steps if step < 9] == list(range(9))


def test_a_batch_that_the_collector_cannot_export_is_retried(running: Collector) -> None:
    running.behind.status = 503
    sink = create_sink(urls(running)["grpc"])
    sink.write(losses(0))
    running.behind.status = 200
    eventually(lambda: _flushed(sink), "the collector receives the spooled records")
    assert steps_received(running) == [0, 1, 2]


@pytest.mark.parametrize("scheme", ["otlp", "otlp+http"])
def test_a_hanging_receiver_delays_neither_other_sinks_nor_the_exit(scheme: str) -> None:
    other = ListSink()
    with mute_listener() as port:
        recording = RecordPipeline(origin(), [sink_maker(f"{scheme}://127.0.0.1:{port}"), other.maker], buffer=Buffer())
        recording.append("metric", "loss", value=7.0)
        eventually(lambda: len(other.taken) == 1, "the other sink has it")
        closed = recording.close(DEADLINE_S)
        assert not closed.dropped
    with collector() as receiver:
        receiver.grpc_port, receiver.http_port = (
            (port, receiver.http_port) if scheme == "otlp" else (receiver.grpc_port, port)
        )
        receiver.start()
        successor = create_sink(f"{scheme}://127.0.0.1:{port}", incarnation="00000002")
        eventually(lambda: _flushed(successor), "a new collector receives the spooled records")
        assert steps_received(receiver) == [7]


@pytest.mark.usefixtures("enough_time")
def test_rejected_records_are_dropped_and_counted() -> None:
    with http_receiver() as receiver:
        receiver.status = 400
        recording = RecordPipeline(origin(), [sink_maker(f"otlp+{receiver.url}")], buffer=Buffer())
        recording.append("metric", "loss", value=1.0)
        recording.flush(DEADLINE_S)
        receiver.status = 200
        recording.append("metric", "loss", value=2.0)
        closed = recording.close(DEADLINE_S)
    assert closed.dropped == {f"otlp+{receiver.url}: refused": 1}
    assert len([each for each in receiver.taken if each.path == "/v1/metrics"]) == 1


@pytest.mark.usefixtures("enough_time")
def test_a_receiver_of_metrics_only_gets_metrics() -> None:
    with http_receiver() as receiver:
        receiver.statuses["/v1/logs"] = 404
        sink = create_sink(f"otlp+{receiver.url}")
        note = Record("event", T, "note", payload={"message": "saved"})
        with pytest.raises(SinkRefused, match="HTTP 404"):
            sink.write([note])
        sink.write([*losses(0), note])
        assert [request.path for request in receiver.taken] == ["/v1/metrics"]


@pytest.mark.usefixtures("enough_time")
def test_headers_and_compression_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with http_receiver() as receiver:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-token=a%20b")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
        sink = create_sink("otlp:")
        sink.write(losses(0))
        [request] = receiver.taken
    assert request.headers["X-Token"] == "a b"
    assert request.headers["Content-Encoding"] == "gzip"


def test_a_stopped_receiver_does_not_delay_the_exit_of_a_program(tmp_path: Path) -> None:
    with mute_listener() as port:
        began = time.monotonic()
        ended = run_program(
            f"recording = begin('jsonl:', 'otlp://127.0.0.1:{port}')\n"
            "for step in range(1000): metrics.record('loss', 1.0, step=step)\n",
            tmp_path,
        )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    assert time.monotonic() - began < DEADLINE_S


@pytest.mark.parametrize(
    ("url", "env", "expected"),
    [
        ("otlp://host:4317", {}, OtlpEndpoint("host:4317", grpc=True, encrypted=False)),
        ("otlp+http://host:4318", {}, OtlpEndpoint("http://host:4318", grpc=False, encrypted=False)),
        ("otlp+https://host/base/", {}, OtlpEndpoint("https://host/base", grpc=False, encrypted=True)),
        ("otlp:", {}, OtlpEndpoint("localhost:4317", grpc=True, encrypted=False)),
        (
            "otlp:",
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "https://host:4317", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/ca.pem"},
            OtlpEndpoint("host:4317", grpc=True, encrypted=True, certificate="/ca.pem"),
        ),
        (
            "otlp:",
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "mine"},
            OtlpEndpoint("http://localhost:4318", grpc=False, encrypted=False, declared={"service.name": "mine"}),
        ),
    ],
)
def test_a_url_and_the_environment_select_a_receiver(url: str, env: dict[str, str], expected: OtlpEndpoint) -> None:
    assert endpoint_of(url, env) == expected


@pytest.mark.parametrize("content", [None, "not PEM"])
def test_an_unreadable_certificate_is_named_and_may_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", str(file))
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    sink = sink_maker("otlp+https://host:4318").make(origin())
    sink.open()
    sink.write([Record("metric", 5.0, "loss", 1.0)])
    with pytest.raises(SinkUnavailable, match=r"OTEL_EXPORTER_OTLP_CERTIFICATE: cannot read .*ca\.pem"):
        sink.flush()
    sink.close()
    assert list((tmp_path / "spool").rglob("records.jsonl"))


@pytest.mark.parametrize("url", ["otlp+http:", "otlp+https://", "otlp://:4317", "otlp://host:port"])
def test_a_url_without_a_host_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"; write otlp"):
        sink_maker(url)


def _flushed(sink: Sink) -> bool:
    try:
        sink.flush()
    except SinkUnavailable:
        return False
    return True
