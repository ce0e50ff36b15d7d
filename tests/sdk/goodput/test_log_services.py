"""Logs of a service or an object are read repeatedly and include entries that become visible late."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.log.payloads import read_payloads
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from support.goodput.logs import NOW, EventCollector, events_in
from support.servers.logging_server import logging_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.servers.logging_server import LoggingServer

T = NOW.timestamp()


def step(number: int, at: float = T - 60, job: str = "job") -> dict[str, Any]:
    return {"job_name": job, "step_count": number, "step_start_time": at + number}


class Reader:
    """Gives entries by the moment at which they were logged, as the peer's readers do."""

    def __init__(self) -> None:
        self.entries: list[tuple[float, dict[str, Any]]] = []
        self.queries: list[tuple[datetime, datetime]] = []

    def read_cloud_logging_entries(
        self, start_time: datetime, end_time: datetime, last_entry_info: object = None
    ) -> tuple[list[dict[str, Any]], object]:
        self.queries.append((start_time, end_time))
        page = [(at, p) for at, p in self.entries if start_time.timestamp() < at <= end_time.timestamp()]
        return [p for _, p in page], self.end([at for at, _ in page]) or (None, last_entry_info)

    def end(self, logged: list[float]) -> object:  # noqa: ARG002 - this one does not say
        """The cursor at the end of a response."""
        return None


class _WithCursor(Reader):
    def end(self, logged: list[float]) -> object:  # type: ignore[explicit-override]
        return (datetime.fromtimestamp(max(logged), timezone.utc), "id") if logged else None


def test_an_object_that_returns_a_cursor_is_read_from_there() -> None:
    reader, listener = _WithCursor(), EventCollector()
    log = CallbackLog(reader)
    reader.entries = [(T - 86400 * 300, step(0)), (T - 1, step(1))]
    log.read_new(listener, NOW)
    reader.entries += [(T - 5, step(2)), (T + 1, step(3))]  # one that becomes visible late
    log.read_new(listener, NOW + timedelta(seconds=10))
    log.read_new(listener, NOW + timedelta(seconds=20))
    assert listener.steps() == [0, 1, 2, 3]
    assert reader.queries[0][0].timestamp() == 0
    assert reader.queries[2][0] > NOW - timedelta(hours=1)


def test_an_object_without_a_cursor_is_read_completely() -> None:
    reader, listener = Reader(), EventCollector()
    log = CallbackLog(reader)
    reader.entries = [(T - 86400, step(0))]
    log.read_new(listener, NOW)
    reader.entries.append((T - 80000, step(1)))
    log.read_new(listener, NOW + timedelta(seconds=10))
    assert listener.steps() == [0, 1]
    assert [start.timestamp() for start, _ in reader.queries] == [0, 0]


class _ByName(Reader):
    def read_cloud_logging_entries(  # type: ignore[override]
        self, *, start_time: datetime, end_time: datetime, last_entry_info: object
    ) -> tuple[list[dict[str, Any]], object]:
        return super().read_cloud_logging_entries(start_time, end_time, last_entry_info)


class _WithoutDefaults(Reader):
    def read_cloud_logging_entries(  # type: ignore[override]
        self, start_time: datetime, end_time: datetime, last_entry_info: object
    ) -> tuple[list[dict[str, Any]], object]:
        return super().read_cloud_logging_entries(start_time, end_time, last_entry_info)


@pytest.mark.parametrize("kind", [_ByName, _WithoutDefaults])
def test_an_object_is_called_with_the_arguments_that_it_accepts(kind: type[Reader]) -> None:
    reader, listener = kind(), EventCollector()
    reader.entries = [(T - 60, step(0)), (T + 1, step(1))]
    CallbackLog(reader).read_new(listener, NOW)
    assert listener.steps() == [0]


def test_retention_bounds_the_first_question() -> None:
    reader = Reader()
    CallbackLog(reader, retention=timedelta(days=7)).read_new(EventCollector(), NOW)
    assert reader.queries == [(NOW - timedelta(days=7), NOW)]


def test_older_readers_take_no_arguments_and_return_a_list() -> None:
    class Old:
        def read_cloud_logging_entries(self) -> list[dict[str, Any]]:
            return [step(0), step(1), step(2, job="other")]

    log, listener = CallbackLog(Old(), job_name="job"), EventCollector()
    log.read_new(listener, NOW)
    assert listener.steps() == [0, 1]
    assert [record.payload for record in log.payloads(NOW)] == [step(0), step(1)]
    assert read_payloads("other", "logger", given=Old()) == [step(2, job="other")]


def test_garbage_is_counted_once_however_often_it_is_read() -> None:
    reader, listener = Reader(), EventCollector()
    reader.entries = [(T - 1, step(-5)), (T - 1, step(-6)), (T - 1, None), (T - 1, {"job_name": "job"})]  # type: ignore[list-item]
    log = CallbackLog(reader, job_name="job")
    for _ in range(3):
        log.read_new(listener, NOW)
    assert listener.ignored == {"bad step": 2, "unreadable payload": 1, "no known event": 1}


@pytest.mark.parametrize("answer", [7, ("x", "y", "z"), [[1]], None])
def test_what_an_object_answers_never_ends_a_query_oddly(answer: Any) -> None:
    class Odd:
        def read_cloud_logging_entries(self, *_: object) -> Any:
            return answer

    log, listener = CallbackLog(Odd()), EventCollector()
    if answer == 7:
        with pytest.raises(LogUnreadable, match="Odd"):
            log.read_new(listener, NOW)
    else:
        log.read_new(listener, NOW)
        assert not listener.events


def test_an_object_that_fails_is_named() -> None:
    class Broken:
        def read_cloud_logging_entries(self, *_: object) -> Any:
            raise OSError("the network is gone")

    with pytest.raises(
        LogUnreadable, match=r"cloud_logger=Broken: read_cloud_logging_entries\(\) failed: .*the network is gone"
    ):
        events_in(CallbackLog(Broken()))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoggingServer]:
    """A server of Cloud Logging's API."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
    with logging_server() as made:
        yield made


def url(server: LoggingServer, job: str = "job") -> str:
    return f"cloud-logging:{server.url}/goodput_job/{job}"


def entry(payload: dict[str, Any], logged: str, number: int = 0) -> dict[str, Any]:
    return {
        "logName": "projects/my-project/logs/goodput_job",
        "timestamp": logged,
        "severity": "INFO",
        "insertId": f"id-{number:04}",
        "jsonPayload": payload,
    }


def test_what_a_recorder_writes_to_cloud_logging_is_read_there(
    server: LoggingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLDIAG_RANK", "2")
    monkeypatch.setenv("MLDIAG_RUN_ID", "e" * 64)
    monkeypatch.setenv("MLDIAG_GOODPUT_LOG", f"cloud-logging:{server.url}")
    recorder = GoodputRecorder('a "job"', "goodput_job", logging_enabled=True)
    recorder.record_job_start_time(T - 60)  # type: ignore[arg-type]
    for number in range(10):
        recorder.record_step_start_time(number, T - 50 + number)  # type: ignore[arg-type]
    recorder.close()
    listener = events_in(url(server, "a%20%22job%22"))
    assert listener.events[0] == Event(round((T - 60) * 1e6), EventCode.JOB_START, 0, 2, "e" * 64)
    assert listener.steps() == list(range(10))
    written = list(server.entries.values())
    assert {each["logName"] for each in written} == {"projects/my-project/logs/goodput_job"}
    assert {each["severity"] for each in written} == {"INFO"}
    times = {key for each in written for key in each["jsonPayload"] if "time" in key}
    assert times == {"job_start_time", "step_start_time"}
    assert not events_in(url(server, "job")).events


def test_what_the_service_shows_late_is_not_lost(server: LoggingServer) -> None:
    server.put(*(entry(step(number), f"2026-11-20T23:59:{number:02}Z", number) for number in range(8)))
    server.entries = dict(reversed(server.entries.items()))
    server.hidden = 4  # the ones logged first
    log, listener = open_log(url(server)), EventCollector()
    log.read_new(listener, NOW)
    assert sorted(listener.steps()) == [4, 5, 6, 7]
    server.hidden = 0
    log.read_new(listener, NOW + timedelta(seconds=30))
    log.read_new(listener, NOW + timedelta(seconds=60))
    assert sorted(listener.steps()) == list(range(8))


def test_what_is_written_long_after_it_happened_is_not_lost(server: LoggingServer) -> None:
    log, listener = open_log(url(server)), EventCollector()
    log.read_new(listener, NOW)
    late = entry(step(1, T - 7200), "2026-11-20T22:00:00Z")
    server.put({**late, "receiveTimestamp": "2026-11-21T00:00:05Z"})
    log.read_new(listener, NOW + timedelta(seconds=10))
    assert listener.steps() == [1]


def test_entries_of_orbax_are_dated_by_the_service(server: LoggingServer) -> None:
    record = {"job_name": "job", "event_type": "save", "checkpoint_manager_blocking_duration_secs": 2, "step": 5.0}
    server.put(entry(record, "2026-11-20T23:00:02Z"))
    us = round((T - 3600) * 1e6)
    assert events_in(url(server)).events == [Event(us, EventCode.SAVED, CheckpointEvent(us + 2_000_000, 5))]


def test_a_position_is_the_moment_of_the_last_question(server: LoggingServer) -> None:
    server.put(entry(step(0), "2026-11-20T23:00:00Z", 0), entry(step(1), "2026-11-20T23:55:00Z", 1))
    first, second, listener = open_log(url(server)), open_log(url(server)), EventCollector()
    first.read_new(EventCollector(), NOW)
    second.resume(first.position())
    second.read_new(listener, NOW)
    assert listener.steps() == [1]
    with pytest.raises(ValueError, match="isoformat"):
        second.resume({"queries": "yesterday"})


@pytest.mark.parametrize(
    ("status", "advice"), [(403, "roles/logging.viewer"), (404, "my-project"), (400, "my-project")]
)
def test_a_log_that_may_not_be_read_says_so(server: LoggingServer, status: int, advice: str) -> None:
    server.status = status
    with pytest.raises(LogUnreadable, match=rf"Cloud Logging my-project/goodput_job.*{advice}|{advice}"):
        events_in(url(server))


def test_an_outage_costs_a_recorder_nothing(server: LoggingServer) -> None:
    server.status = 503
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, log=f"cloud-logging:{server.url}")
    recorder.record_step_start_time(1, T - 5)  # type: ignore[arg-type]
    recorder.close()
    server.status = 200
    recorder.record_step_start_time(2, T - 4)  # type: ignore[arg-type]
    recorder.close()
    assert sorted(events_in(url(server)).steps()) == [1, 2]
