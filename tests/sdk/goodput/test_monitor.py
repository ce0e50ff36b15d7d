"""A monitor with its process, a real log and real destinations."""

from __future__ import annotations

import inspect
import logging
import os
import signal
import sys
import threading
import urllib.request
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from cluster.ports import free_port
from mldiagnostics.diagnostics import counts
from mldiagnostics.goodput.exports.selection import open_exports
from mldiagnostics.goodput.monitor.assignment import Assignment
from mldiagnostics.goodput.monitor.uploading import MAX_RESTARTS
from mldiagnostics.goodput.queries.calculator import GoodputCalculator
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.goodput.report import from_json
from mldiagnostics.goodput_elastic import ElasticGoodputRecorder
from mldiagnostics.goodput_utils import GCPOptions
from mldiagnostics.monitoring import GoodputMonitor
from mldiagnostics.monitoring_elastic import ElasticGoodputMonitor
from mldiagnostics.store import open_store
from support.goodput.monitors import alive, curves, last, monitors_of
from support.programs.processes import eventually
from support.records import records_in
from support.servers.monitoring_server import monitoring_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PEER = [
    *("job_name", "logger_name", "tensorboard_dir", "upload_interval", "monitoring_enabled", "pathway_enabled"),
    *("include_badput_breakdown", "include_step_deviation", "configured_ideal_step_time"),
    *("step_deviation_interval_seconds", "gcp_options", "skip_final_flush", "final_flush_timeout_seconds"),
    *("gcs_sync_interval_seconds", "cache_dir", "max_logs_retention_period"),
]
PEER_ELASTIC = [*PEER[:5], *PEER[6:8], "include_slice_efficiency", *PEER[8:]]
NO_CLOUD = GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False)
FAST_S = 0.1
NEVER_S = 3600.0

LOWEST_PRIORITY = 19  # a process of this niceness can have no nicer child


@pytest.fixture(autouse=True)
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path / "storage"))
    monkeypatch.setenv("ML_GOODPUT_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def recorder() -> Iterator[GoodputRecorder]:
    """The recorder of a job that has begun and has done five steps."""
    made = GoodputRecorder("job", "goodput_job", logging_enabled=True)
    made.record_job_start_time()
    for step in range(5):
        made.record_step_start_time(step)
    yield made
    made.close()


@pytest.fixture
def monitored(tmp_path: Path) -> Iterator[Callable[..., GoodputMonitor]]:
    """Makes monitors, whose processes are gone after the test."""
    made: list[GoodputMonitor] = []

    def make(
        interval_s: float = FAST_S, kind: type[GoodputMonitor] = GoodputMonitor, **given: object
    ) -> GoodputMonitor:
        options = {"monitoring_enabled": True, "gcp_options": NO_CLOUD, "final_flush_timeout_seconds": 60, **given}
        place = options.pop("tensorboard_dir", str(tmp_path / "tb"))
        monitor = kind("job", "goodput_job", place, interval_s, **options)  # type: ignore[arg-type]
        made.append(monitor)
        return monitor

    yield make
    for monitor in made:
        monitor.stop_goodput_uploader(skip_final_flush=True)
        monitor.stop_step_deviation_uploader(skip_final_flush=True)
        monitor.stop_rolling_window_goodput_uploader(skip_final_flush=True)
    eventually(lambda: not monitors_of(os.getpid()))  # a killed process exists for a moment


def fetch(url: str, folder: Path) -> Path:
    """Copy what is below a URL into a folder."""
    store = open_store(url)
    for entry in store.list():
        path = folder / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        with store.open(entry.key) as data:
            path.write_bytes(data.read())
    return folder


def worker(monitor: GoodputMonitor) -> int:
    """The id of a monitor's process."""
    assert monitor._running is not None
    assert monitor._running.pid is not None
    return monitor._running.pid


@pytest.mark.parametrize(("kind", "names"), [(GoodputMonitor, PEER), (ElasticGoodputMonitor, PEER_ELASTIC)])
def test_a_monitor_has_the_peers_parameters(kind: type[GoodputMonitor], names: list[str]) -> None:
    parameters = inspect.signature(kind).parameters.values()
    assert [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY] == names
    assert {each.name for each in parameters if each.kind is each.KEYWORD_ONLY} == {"log", "exports"}
    defaults = {each.name: each.default for each in parameters}
    assert (defaults["final_flush_timeout_seconds"], defaults["step_deviation_interval_seconds"]) == (10, 10)
    assert defaults["monitoring_enabled"] is False


def test_a_monitor_uploads_while_the_job_runs_and_a_last_time_when_it_stops(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    monitor = monitored(include_badput_breakdown=True, include_step_deviation=True, step_deviation_interval_seconds=0.1)
    monitor.start_goodput_uploader()
    monitor.start_step_deviation_uploader()
    eventually(lambda: last(tmp_path / "tb") is not None)
    eventually(lambda: last(tmp_path / "tb", "step_deviation") is not None)
    assert len(monitors_of(os.getpid())) == 1
    for step in range(5, 9):
        recorder.record_step_start_time(step)
    recorder.record_job_end_time()
    monitor.stop_goodput_uploader()
    monitor.stop_step_deviation_uploader()
    goodput, breakdown, step = GoodputCalculator("job", "goodput_job").get_job_goodput(include_badput_breakdown=True)
    shown = curves(tmp_path / "tb")
    assert step == 8
    assert shown["goodput/goodput"][-1] == (8, pytest.approx(goodput, rel=1e-5))
    assert {tag.rpartition("/")[2].upper() for tag in shown if tag.startswith("badput/")} <= {
        bucket.name for bucket in breakdown
    }
    assert [step for step, _ in shown["step_deviation"]] == list(range(8))
    assert not monitors_of(os.getpid())


def test_a_step_is_exported_once_also_by_the_next_process(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    for steps in (range(5, 8), range(8, 12)):
        for step in steps:
            recorder.record_step_start_time(step)
        monitor = monitored(NEVER_S, include_step_deviation=True)
        monitor.start_step_deviation_uploader()
        monitor.stop_step_deviation_uploader()
    assert [step for step, _ in curves(tmp_path / "tb")["step_deviation"]] == list(range(11))


def test_a_step_is_exported_once_also_by_the_next_machine_with_a_bucket(
    bucket_url: str, monitored: Callable[..., GoodputMonitor], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    points: list[tuple[str, int]] = []
    for machine, steps in (("one", range(8)), ("two", range(8, 12))):
        monkeypatch.setenv("ML_GOODPUT_CACHE_DIR", str(tmp_path / machine))
        recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True, log=f"{bucket_url}/log")
        if machine == "one":
            recorder.record_job_start_time()
        for step in steps:
            recorder.record_step_start_time(step)
        recorder.close()
        monitor = monitored(
            NEVER_S,
            include_step_deviation=True,
            tensorboard_dir=f"{bucket_url}/tb",
            log=f"{bucket_url}/log",
        )
        monitor.start_step_deviation_uploader()
        monitor.stop_step_deviation_uploader()
        fetched = fetch(f"{bucket_url}/tb", tmp_path / f"tb of {machine}")
        points += [(machine, step) for step, _ in curves(fetched)["step_deviation"][len(points) :]]
    assert points == [*[("one", step) for step in range(7)], *[("two", step) for step in range(7, 11)]]


def test_without_a_breakdown_there_is_no_badput(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    recorder.record_job_end_time()
    monitored(NEVER_S).stop_goodput_uploader()
    assert list(curves(tmp_path / "tb")) == ["goodput/goodput"]


@pytest.mark.usefixtures("recorder")
def test_files_get_whole_reports(monitored: Callable[..., GoodputMonitor], tmp_path: Path) -> None:
    monitored(NEVER_S, exports=f"jsonl:{tmp_path / 'out'}").stop_goodput_uploader()
    [payload] = [each.payload for each in records_in(tmp_path / "out", kind="event") if each.name == "goodput_report"]
    assert payload is not None
    report = from_json(payload)
    assert (report.name, report.cumulative.max_step, report.cumulative.last_step) == ("job", 3, 4)


@pytest.mark.usefixtures("recorder")
def test_deviations_are_uploaded_only_if_started(monitored: Callable[..., GoodputMonitor], tmp_path: Path) -> None:
    monitor = monitored(NEVER_S)
    monitor.start_step_deviation_uploader()
    monitor.stop_step_deviation_uploader()
    assert not (tmp_path / "tb").exists()


def test_cloud_monitoring_gets_the_job_and_its_windows(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor]
) -> None:
    recorder.record_job_end_time()
    with monitoring_server() as server:
        options = GCPOptions(project_id="p", location="z", acc_type="TPU-v6e", cluster_name="c")
        monitor = monitored(NEVER_S, gcp_options=options, exports=[server.url])
        monitor.start_goodput_uploader()
        monitor.start_rolling_window_goodput_uploader([60, 3600])
        monitor.stop_goodput_uploader()
        monitor.stop_rolling_window_goodput_uploader()
        [steps] = server.named("compute.googleapis.com/workload/max_productive_steps")
        assert (steps.value, dict(steps.resource[1])["workload_id"]) == (4, "job")
        windows = server.named("compute.googleapis.com/workload/interval_goodput")
        assert {each.labels["rolling_window_size"] for each in windows} == {"60", "3600"}
        assert not server.faults


def test_slices_of_an_elastic_job_and_a_window_by_its_older_name(monitored: Callable[..., GoodputMonitor]) -> None:
    recorder = ElasticGoodputRecorder("job", "goodput_job", logging_enabled=True)
    end = datetime.now(timezone.utc)
    begin = end - timedelta(seconds=100)
    recorder.record_job_start_time(begin)
    recorder.record_elastic_slice_counts(1, 4, 3, begin)
    recorder.record_step_start_time(0, begin)
    recorder.record_job_end_time(end)
    with monitoring_server() as server:
        monitor = monitored(
            NEVER_S,
            ElasticGoodputMonitor,
            include_slice_efficiency=True,
            gcp_options=GCPOptions(project_id="p", location="z", acc_type="a", cluster_name="c"),
            exports=server.url,
        )
        monitor.start_goodput_uploader()
        monitor.start_goodput_interval_uploader(1000)
        monitor.start_rolling_window_goodput_uploader([60])
        monitor.stop_goodput_uploader()
        monitor.stop_rolling_window_goodput_uploader()
        monitor.stop_goodput_interval_uploader()
        points = {
            (each.name.rpartition("/")[2], each.labels.get("rolling_window_size")): each for each in server.written
        }
    recorder.close()
    assert points["stepping_slice_efficiency", "0"].value == pytest.approx(0.25)
    assert points["available_slice_efficiency", "1000"].value == pytest.approx(0.75)
    assert {window for name, window in points if name == "interval_goodput"} == {"60", "1000"}
    assert points["interval_goodput", "1000"].value == pytest.approx(100.0)


def test_further_destinations_come_from_the_environment(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("MLDIAG_GOODPUT_EXPORTS", f"prometheus:127.0.0.1:{port}")
    monitored().start_goodput_uploader()
    eventually(lambda: "ml_goodput_max_productive_step 3.0" in _scraped(port))
    recorder.record_step_start_time(5)
    eventually(lambda: "ml_goodput_max_productive_step 4.0" in _scraped(port))


@pytest.mark.usefixtures("recorder")
def test_a_second_start_changes_nothing(
    monitored: Callable[..., GoodputMonitor], caplog: pytest.LogCaptureFixture
) -> None:
    monitor = monitored(NEVER_S)
    monitor.start_goodput_uploader()
    first = worker(monitor)
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        monitor.start_goodput_uploader()
    assert "already running" in caplog.text
    assert monitors_of(os.getpid()) == [first]


def test_a_stop_without_a_start_uploads_once(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    recorder.record_job_end_time()
    monitor = monitored(NEVER_S)
    monitor.stop_goodput_uploader()
    monitor.stop_goodput_uploader()
    assert len(curves(tmp_path / "tb")["goodput/goodput"]) == 1


@pytest.mark.usefixtures("recorder")
def test_a_stop_that_skips_the_last_upload_uploads_nothing(
    monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    monitor = monitored(NEVER_S, skip_final_flush=True)
    monitor.start_goodput_uploader()
    monitor.stop_goodput_uploader()
    other = monitored(NEVER_S)
    other.start_goodput_uploader()
    other.stop_goodput_uploader(skip_final_flush=True)
    assert not last(tmp_path / "tb")


@pytest.mark.usefixtures("recorder")
def test_a_stop_that_skips_the_last_upload_does_not_warn(
    monitored: Callable[..., GoodputMonitor], caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        monitor = monitored(NEVER_S, skip_final_flush=True)
        monitor.start_goodput_uploader()
        monitor.stop_goodput_uploader()
    listeners = [thread for thread in threading.enumerate() if thread.name == "mldiagnostics-monitor"]
    for thread in listeners:
        thread.join(60)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []


GIVEN = {"given": asdict(GCPOptions()), "not given": {}}


@pytest.mark.parametrize("gcp", GIVEN.values(), ids=GIVEN)
def test_a_program_with_cloud_monitoring_is_warned_of_a_missing_extra(
    gcp: dict[str, object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.monitoring_v3", None)
    monkeypatch.setattr("mldiagnostics.diagnostics._counts", {})
    with caplog.at_level(logging.INFO, logger="mldiagnostics"):
        exports = open_exports(Assignment(job="job", logger="logger", log="/nowhere", gcp=gcp))
    exports.close(0.0)
    (warning,) = caplog.records
    assert warning.levelno == logging.WARNING
    assert "cloud-monitoring" in warning.message


@pytest.mark.usefixtures("recorder")
def test_a_hanging_process_is_killed_after_the_timeout(monitored: Callable[..., GoodputMonitor]) -> None:
    monitor = monitored(NEVER_S, final_flush_timeout_seconds=0.5)
    monitor.start_goodput_uploader()
    pid = worker(monitor)
    os.kill(pid, signal.SIGSTOP)
    before = counts().get("goodput-flush", 0)
    monitor.stop_goodput_uploader()
    eventually(lambda: not alive(pid))
    assert counts()["goodput-flush"] == before + 1


def test_a_dead_process_is_restarted(
    recorder: GoodputRecorder, monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    monitor = monitored()
    monitor.start_goodput_uploader()
    eventually(lambda: last(tmp_path / "tb") is not None)
    first = worker(monitor)
    os.kill(first, signal.SIGKILL)
    for step in range(5, 9):
        recorder.record_step_start_time(step)
    eventually(lambda: (last(tmp_path / "tb") or (0, 0.0))[0] == 7)
    assert worker(monitor) != first


@pytest.mark.usefixtures("recorder")
def test_a_process_that_dies_repeatedly_is_not_restarted_except_for_a_stop(
    monitored: Callable[..., GoodputMonitor], tmp_path: Path
) -> None:
    monitor = monitored(NEVER_S)
    monitor.start_goodput_uploader()
    before = counts().get("goodput-monitor-over", 0)
    killed: list[int] = []
    for _ in range(1 + MAX_RESTARTS):
        eventually(lambda: set(monitors_of(os.getpid())) - set(killed))
        [pid] = set(monitors_of(os.getpid())) - set(killed)
        os.kill(pid, signal.SIGKILL)
        killed.append(pid)
    eventually(lambda: counts().get("goodput-monitor-over", 0) == before + 1)
    assert not monitors_of(os.getpid())
    monitor.stop_goodput_uploader()
    assert last(tmp_path / "tb")


@pytest.mark.usefixtures("recorder")
def test_a_process_that_dies_after_a_long_time_is_always_restarted(
    monitored: Callable[..., GoodputMonitor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mldiagnostics.goodput.monitor.uploading.STABLE_S", 0.0)  # now any time is long
    monitored(NEVER_S).start_goodput_uploader()
    killed: set[int] = set()
    for _ in range(2 + MAX_RESTARTS):
        eventually(lambda: set(monitors_of(os.getpid())) - killed)
        [pid] = set(monitors_of(os.getpid())) - killed
        os.kill(pid, signal.SIGKILL)
        killed.add(pid)
    eventually(lambda: set(monitors_of(os.getpid())) - killed)


@pytest.mark.usefixtures("recorder")
def test_signals_to_the_job_do_not_stop_the_monitor(monitored: Callable[..., GoodputMonitor], tmp_path: Path) -> None:
    monitor = monitored()
    monitor.start_goodput_uploader()
    eventually(lambda: last(tmp_path / "tb") is not None)
    pid, seen = worker(monitor), len(curves(tmp_path / "tb")["goodput/goodput"])
    os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGINT)
    eventually(lambda: len(curves(tmp_path / "tb")["goodput/goodput"]) > seen + 1)
    assert worker(monitor) == pid
    own = os.getpriority(os.PRIO_PROCESS, os.getpid())
    assert os.getpriority(os.PRIO_PROCESS, pid) > own or own == LOWEST_PRIORITY
    assert os.getsid(pid) == pid


def test_a_log_that_comes_later_is_read_when_it_is_there(
    monitored: Callable[..., GoodputMonitor], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        monitored().start_goodput_uploader()
        eventually(lambda: "no goodput log" in caplog.text)
    recorder = GoodputRecorder("job", "goodput_job", logging_enabled=True)
    recorder.record_job_start_time()
    recorder.record_step_start_time(0)
    eventually(lambda: last(tmp_path / "tb") is not None)
    recorder.close()


@pytest.mark.usefixtures("recorder")
def test_a_log_with_other_jobs_only_is_named(
    monitored: Callable[..., GoodputMonitor], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.jsonl"
    other.write_text('{"job_name": "another", "job_start_time": 1790000000.0}\n')
    with caplog.at_level(logging.WARNING, logger="mldiagnostics"):
        monitored(NEVER_S, log=str(other)).stop_goodput_uploader()
        eventually(lambda: f"no goodput yet, {other} has no events of this job" in caplog.text)
    assert not last(tmp_path / "tb")


def test_invalid_arguments_are_logged_and_do_not_raise(
    monitored: Callable[..., GoodputMonitor], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger="mldiagnostics"):
        monitor = monitored(0)
        monitor.start_goodput_uploader()
        monitor.stop_goodput_uploader()
        monitored().start_rolling_window_goodput_uploader("nonsense")  # type: ignore[arg-type]
        monitored().start_rolling_window_goodput_uploader([3600, -5])
    assert "upload_interval=0: not a number of seconds above 0" in caplog.text
    assert "the uploader of rolling windows cannot be started" in caplog.text
    assert "[3600, -5] are not all numbers of seconds above 0" in caplog.text


def test_options_of_the_caller_are_left_as_they_are(monitored: Callable[..., GoodputMonitor]) -> None:
    options = GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False)
    monitored(NEVER_S, gcp_options=options).start_goodput_uploader()
    assert options == NO_CLOUD


def _scraped(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text: str = answer.read().decode()
            return text
    except OSError:
        return ""
