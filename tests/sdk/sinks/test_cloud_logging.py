"""Google's client writes to a server with Cloud Logging's API; records wait during its outages."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import SinkRefused, SinkUnavailable, sink_maker
from mldiagnostics.sinks.cloud_logging import CloudLoggingSink, CredentialsLookup
from support.records import DEADLINE_S, ListSink, eventually, origin
from support.servers.receivers import http_receiver

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mldiagnostics.sinks import Sink
    from support.servers.receivers import HttpReceiver

T = 1_777_000_000.0
PROCESS = replace(origin(), project="my-project", region="us-central1")


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(CredentialsLookup.wait, "__defaults__", (DEADLINE_S,))


@pytest.fixture
def server() -> Iterator[HttpReceiver]:
    """A server for `entries:write`."""
    with http_receiver() as receiver:
        yield receiver


def create_sink(server: HttpReceiver, incarnation: str = "00000001") -> Sink:
    sink = sink_maker(f"cloud-logging:{server.url}").make(replace(PROCESS, incarnation=incarnation))
    sink.open()
    return sink


def losses(start: int, count: int = 3) -> list[Record]:
    return [Record("metric", T + number, "loss", float(number), step=number) for number in range(start, start + count)]


def steps_received(server: HttpReceiver) -> list[int]:
    """Return the received steps in order, only the first of each id, as Cloud Logging does."""
    entries = [entry for request in server.taken for entry in request.json["entries"]]
    return list({entry["insertId"]: entry["jsonPayload"]["step_index"] for entry in entries}.values())


def flushed(sink: Sink) -> bool:
    try:
        sink.flush()
    except SinkUnavailable:
        return False
    return True


def test_googles_client_writes_all_records(server: HttpReceiver) -> None:
    recording = RecordPipeline(PROCESS, [sink_maker(f"cloud-logging:{server.url}")], buffer=Buffer())
    for step in range(250):
        recording.append("metric", "loss", value=step / 8, step=step, labels={"a": "b"}, t=T + step)
    closed = recording.close(DEADLINE_S)
    assert closed.complete
    assert {request.path.partition("?")[0] for request in server.taken} == {"/v2/entries:write"}
    assert all(request.json["partialSuccess"] for request in server.taken)
    assert len(server.taken) < 20
    entries = list({entry["insertId"]: entry for request in server.taken for entry in request.json["entries"]}.values())
    assert [entry["jsonPayload"] for entry in entries] == [
        {"values": [step / 8], "step_index": step, "a": "b", "unit": "1"} for step in range(250)
    ]
    assert entries[0]["logName"] == "projects/my-project/logs/ml_diagnostics_metric"
    assert entries[0]["resource"]["labels"]["location"] == "us-central1"


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_retryable_errors_are_retried(server: HttpReceiver, status: int) -> None:
    sink = create_sink(server)
    sink.write(losses(0))
    server.status = status
    sink.write(losses(3))
    assert not flushed(sink)
    sink.write(losses(6))
    server.status = 200
    eventually(lambda: flushed(sink), "the server receives the spooled records")
    sink.write(losses(9))
    assert steps_received(server) == list(range(12))


@pytest.mark.parametrize("status", [400, 413])
def test_other_errors_reject_the_batch(server: HttpReceiver, status: int) -> None:
    sink = create_sink(server)
    server.status = status
    with pytest.raises(SinkRefused, match=f"HTTP {status}"):
        sink.write(losses(0))
    server.status = 200
    sink.write(losses(3))
    assert steps_received(server) == [3, 4, 5]


def test_a_missing_role_is_named(server: HttpReceiver) -> None:
    server.status = 403
    sink = CloudLoggingSink(server.url, PROCESS)
    with pytest.raises(SinkUnavailable, match=r"my-project.*roles/logging\.logWriter"):
        sink.write(losses(0))


def test_after_an_outage_all_records_are_delivered_in_order(server: HttpReceiver) -> None:
    server.stop()
    sink = create_sink(server)
    sink.write(losses(0))
    assert not flushed(sink)
    server.start()
    eventually(lambda: flushed(sink), "the server receives the spooled records")
    sink.write(losses(3))
    server.stop()
    sink.write(losses(6))
    sink.close()
    server.start()
    successor = create_sink(server, incarnation="00000002")
    eventually(lambda: flushed(successor), "the server receives records of another process")
    assert steps_received(server) == list(range(9))


def test_a_hanging_server_delays_no_other_sink_and_loses_nothing(server: HttpReceiver) -> None:
    server.hangs = True
    other = ListSink()
    recording = RecordPipeline(PROCESS, [sink_maker(f"cloud-logging:{server.url}"), other.maker], buffer=Buffer())
    recording.append("metric", "loss", value=1.0, step=7)
    eventually(lambda: len(other.taken) == 1, "the other sink has it")
    assert not recording.close(DEADLINE_S).dropped
    server.hangs = False
    successor = create_sink(server, incarnation="00000002")
    eventually(lambda: flushed(successor), "the server receives the spooled records")
    assert steps_received(server) == [7]


def test_without_credentials_records_wait_with_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    sink = CloudLoggingSink("https://127.0.0.1:1", PROCESS)
    why = ""

    def is_logged() -> bool:
        nonlocal why
        with pytest.raises(SinkUnavailable) as caught:
            sink.open()
        why = str(caught.value)
        return "nothing.json" in why

    eventually(is_logged, "the missing file is named")
    spooled = sink_maker("cloud-logging:https://127.0.0.1:1").make(PROCESS)
    spooled.open()
    spooled.write(losses(0))
    spooled.close()
    assert len(list(tmp_path.rglob("records.jsonl"))) == 1


@pytest.mark.parametrize("url", ["cloud-logging:host", "cloud-logging:ftp://host", "cloud-logging:https://"])
def test_an_invalid_url_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"; write cloud-logging: or cloud-logging:https://host"):
        sink_maker(url)
