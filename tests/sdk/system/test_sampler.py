"""The sampler records values, logs each failure once, and stops without waiting."""

import logging
import math
import threading
import time
from pathlib import Path

import pytest
from mldiagnostics import MLRun, machinelearning_run
from mldiagnostics.metric_types import MetricType
from mldiagnostics.runs import read_records
from mldiagnostics.sinks.log_entries import entry_of
from mldiagnostics.system.sampler import Sampler, available_sources
from mldiagnostics.system.source import SystemSample

WAIT_S = 60
THREAD = "mldiagnostics-system"


class FlakySource:
    """A source that sets `done` after `enough` reads; every second read fails."""

    name = "flaky"

    def __init__(self, *, enough: int) -> None:
        self.reads = 0
        self._enough = enough
        self.done = threading.Event()

    def read(self) -> list[SystemSample]:
        self.reads += 1
        if self.reads == self._enough:
            self.done.set()
        if self.reads % 2 == 0:
            raise OSError("the driver is gone")
        return [SystemSample(MetricType.GPU_UTILIZATION, (1.0, 2.0), {"accelerator_type": "gpu"})]


def test_a_source_that_fails_sometimes_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = FlakySource(enough=5)
    with machinelearning_run(name="sampled", storage=tmp_path, log_system_metrics=False) as run:
        sampler = Sampler(run.recording, interval_s=0.01, sources=lambda: [source])
        with caplog.at_level(logging.WARNING, logger="mldiagnostics"):
            sampler.start()
            assert source.done.wait(WAIT_S)
            sampler.stop()
    records = [record for record in read_records(str(tmp_path), run.run_id) if record.kind == "metric"]
    assert len(records) >= 2
    assert {(record.name, record.value, record.step, record.unit) for record in records} == {
        ("gpu_utilization", (1.0, 2.0), None, "%")
    }
    host = run.origin.host
    labels = {"accelerator_type": "gpu", "hostname": host, "process_index": "0"}
    assert all(record.labels == labels for record in records)
    entry = entry_of(records[0], run.origin, project="p", region="r")
    assert entry is not None
    assert entry["jsonPayload"]["accelerator_labels"] == [f"{host}-gpu0", f"{host}-gpu1"]
    assert [entry.message for entry in caplog.records if "flaky" in entry.message] == [
        "system metrics of the flaky could not be read: OSError('the driver is gone')"
    ]


def test_stopping_does_not_wait_for_a_source_that_hangs(tmp_path: Path) -> None:
    is_reading, release = threading.Event(), threading.Event()

    class Hanging:
        name = "hanging"

        def read(self) -> list[SystemSample]:
            is_reading.set()
            release.wait(WAIT_S)
            return []

    with machinelearning_run(name="sampled", storage=tmp_path, log_system_metrics=False) as run:
        sampler = Sampler(run.recording, interval_s=0.01, sources=lambda: [Hanging()])
        sampler.start()
        assert is_reading.wait(WAIT_S)
        sampler.stop()
        assert not release.is_set()
        release.set()


def test_an_endless_interval_is_one_sample(tmp_path: Path) -> None:
    source = FlakySource(enough=1)
    with machinelearning_run(name="endless", storage=tmp_path, log_system_metrics=False) as run:
        sampler = Sampler(run.recording, interval_s=math.inf, sources=lambda: [source])
        sampler.start()
        assert source.done.wait(WAIT_S)
        [thread] = [each for each in threading.enumerate() if each.name == THREAD]
        thread.join(0.2)
        assert thread.is_alive(), "it waits"
        sampler.stop()


def test_the_host_is_always_a_source() -> None:
    assert "host" in {source.name for source in available_sources()}


def test_a_run_samples_its_host_by_default(tmp_path: Path) -> None:
    def measured(run: MLRun) -> set[str]:
        assert run.recording.flush(WAIT_S)
        return {record.name for record in read_records(str(tmp_path), run.run_id, kinds={"metric"})}

    with machinelearning_run(name="on", storage=tmp_path, metrics_record_interval_sec=0.05) as run:
        deadline = time.monotonic() + WAIT_S
        while not measured(run) >= {"host_cpu_utilization", "host_memory_utilization"}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert THREAD in {thread.name for thread in threading.enumerate()}
    before = set(threading.enumerate())  # may include a sampler that did not stop in time
    for off in ({"log_system_metrics": False}, {"metrics_record_interval_sec": 0}):
        with machinelearning_run(name="off", storage=tmp_path, **off) as run:
            assert THREAD not in {thread.name for thread in set(threading.enumerate()) - before}
