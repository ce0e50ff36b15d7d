"""`on_full="wait"` drops no records while a sink accepts them, and never blocks for ever."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline import backpressure, sink_backpressure
from mldiagnostics.pipeline.buffer import CAPACITY, WAIT_CAPACITY, Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.sink_backpressure import WORKER_CAPACITY
from mldiagnostics.runs import read_records
from support.programs.processes import Programs
from support.records import DEADLINE_S, HangingSink, ListSink, origin
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mldiagnostics.pipeline.records import Record

MANY = 3 * (WAIT_CAPACITY + WORKER_CAPACITY)
TIME_LIMIT_S = 300  # of each test
ENDLESS_S = 3600.0  # a test that waited for it would end at its time limit
MORE = CAPACITY + 70_000  # than a buffer that drops has room for


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def fill(buffer: Buffer, number: int = MANY) -> None:
    """Record that many, as fast as it goes."""
    for step in range(number):
        buffer.add("metric", "loss", value=1.0, step=step)


def test_every_record_of_many_threads_is_kept_in_order() -> None:
    sink, buffer = ListSink(), Buffer()
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer, waits=True)
    threads = [threading.Thread(target=fill, args=[buffer, 40_000]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    closed = recording.close(DEADLINE_S)
    assert (closed.dropped, closed.written) == ({}, {"list": 160_000})
    assert sum(record.step == 39_999 for record in sink.taken) == 4


def test_a_tight_loop_keeps_all_its_records(programs: Programs) -> None:
    source = f"""
    from mldiagnostics import machinelearning_run, metrics
    run = machinelearning_run("x", log_system_metrics=False)
    for step in range({MORE}):
        metrics.record("loss", 1.0, step=step)
    print(run.close(timeout_s=60).dropped)
    """
    ended = programs.run(source, env={"MLDIAG_ON_FULL": "wait"})
    assert (ended.code, ended.out) == (0, "{}\n"), ended.err
    steps = [record.step for record in read_records(programs.storage, programs.the_run().run_id, kinds={"metric"})]
    assert steps == list(range(MORE))


def test_the_sdks_own_records_are_kept_beside_a_tight_loop(programs: Programs) -> None:
    source = f"""
    from mldiagnostics import machinelearning_run, metrics
    run = machinelearning_run("x", metrics_record_interval_sec=0.02, on_full="wait")
    for step in range({MORE}):
        run.step(step)
        metrics.record("loss", 1.0, step=step)
    print(run.close(timeout_s=60).dropped)
    """
    ended = programs.run(source, env={"MLDIAG_HEARTBEAT_SECONDS": "0.1"})
    assert (ended.code, ended.out) == (0, "{}\n"), ended.err


def test_a_sink_that_hangs_is_waited_for_once_and_then_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sink_backpressure, "STALL_S", 0.3)
    monkeypatch.setattr("mldiagnostics.pipeline.sink_worker.CAPACITY", WORKER_CAPACITY + 64)
    sink, buffer = HangingSink(), Buffer()
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer, waits=True)
    fill(buffer)
    assert sink.entered.wait(DEADLINE_S)
    sink.released.set()
    closed = recording.close(DEADLINE_S)
    assert set(closed.dropped) == {"list: queue-full"}
    assert closed.dropped["list: queue-full"] * 0.3 > TIME_LIMIT_S  # a stall with each record would not end
    assert closed.written["list"] - _drop_records(sink) + closed.dropped["list: queue-full"] == MANY


def test_a_drain_that_hangs_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backpressure, "ROOM_S", 0.3)
    entered, released = threading.Event(), threading.Event()

    def hang(*_: object) -> dict[str, object]:
        entered.set()
        assert released.wait(DEADLINE_S)
        return {}

    sink, buffer = ListSink(), Buffer()
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer, waits=True)
    buffer.put((1.0, "event", "x", None, None, None, hang, 0))
    assert entered.wait(DEADLINE_S)
    fill(buffer)
    released.set()
    closed = recording.close(DEADLINE_S)
    assert set(closed.dropped) == {"buffer-full"}
    assert closed.dropped["buffer-full"] * 0.3 > TIME_LIMIT_S
    assert closed.written["list"] - _drop_records(sink) + closed.dropped["buffer-full"] == MANY + 1


def _drop_records(sink: ListSink) -> int:
    return sum(record.kind == "drop" for record in sink.taken)


class RecordingSink(ListSink):
    """Records by itself with each batch, as a sink's logging may."""

    def __init__(self, buffer: Buffer) -> None:
        super().__init__()
        self.buffer = buffer

    @override
    def write(self, batch: Sequence[Record]) -> None:
        super().write(batch)
        self.buffer.add("metric", "of the sink", value=1.0)


def test_our_own_threads_never_wait_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backpressure, "ROOM_S", ENDLESS_S)
    buffer = Buffer()
    sink = RecordingSink(buffer)
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer, waits=True)
    fill(buffer)
    recording.close(DEADLINE_S)
    assert sum(record.name == "loss" for record in sink.taken) == MANY


def test_without_a_drain_no_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backpressure, "ROOM_S", ENDLESS_S)
    buffer = Buffer(capacity=100)
    fill(buffer, 1000)
    assert buffer.drops.totals() == {"buffer-full": 900}
    sink = ListSink()
    recording = RecordPipeline(origin(), [sink.maker], buffer=buffer, waits=True)
    recording.close(DEADLINE_S)
    fill(buffer, 1000)
    assert buffer.drops.totals() == {"buffer-full": 900}


def test_a_signal_handler_that_records_neither_hangs_nor_is_lost_uncounted(programs: Programs) -> None:
    source = """
    import signal
    from mldiagnostics import machinelearning_run, metrics
    handled = 0
    def handler(*_):
        global handled
        handled += 1
        metrics.record("of the handler", 1.0, labels={"a": "b"})
    run = machinelearning_run("x", log_system_metrics=False, on_full="wait")
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    for step in range(100_000):
        metrics.record("loss", 1.0, step=step, labels={"a": "b"})
    signal.setitimer(signal.ITIMER_REAL, 0)
    dropped = run.close(timeout_s=60).dropped
    assert set(dropped) <= {"buffer-full"}, dropped
    print(handled - dropped.get("buffer-full", 0))
    """
    ended = programs.run(source)
    assert ended.code == 0, ended.err
    names = [record.name for record in read_records(programs.storage, programs.the_run().run_id, kinds={"metric"})]
    assert names.count("loss") == 100_000
    assert names.count("of the handler") == int(ended.out)


def test_a_forked_child_waits_for_its_own_drain(programs: Programs) -> None:
    source = """
    import os
    from mldiagnostics import machinelearning_run, metrics
    run = machinelearning_run("x", log_system_metrics=False, on_full="wait")
    def work(name):
        for step in range(60_000):
            metrics.record(name, 1.0, step=step)
        assert run.close(timeout_s=60).dropped == {}
    child = os.fork()
    work("parent" if child else "child")
    if child:
        assert os.waitpid(child, 0)[1] == 0
    """
    ended = programs.run(source)
    assert ended.code == 0, ended.err
    names = [record.name for record in read_records(programs.storage, programs.the_run().run_id, kinds={"metric"})]
    assert (names.count("parent"), names.count("child")) == (60_000, 60_000)


def test_sigterm_ends_a_program_whose_records_wait(programs: Programs) -> None:
    source = """
    import os, signal, threading
    from mldiagnostics import machinelearning_run, metrics
    from mldiagnostics.run import closing
    closing.SIGNAL_TIMEOUT_S = 60
    run = machinelearning_run("x", log_system_metrics=False, on_full="wait")
    threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGTERM]).start()
    while True:
        metrics.record("loss", 1.0, labels={"a": "b"})
    """
    ended = programs.run(source)
    assert ended.code == -15, ended.err
    assert (programs.the_run().phase, programs.the_run().reason) == ("Failed", "Terminated")


def test_the_argument_comes_before_the_variable(programs: Programs) -> None:
    source = """
    from mldiagnostics import machinelearning_run
    from mldiagnostics.pipeline.buffer import PROCESS, WAIT_CAPACITY
    machinelearning_run("x", log_system_metrics=False, on_full="wait")
    print(PROCESS.capacity == WAIT_CAPACITY)
    """
    ended = programs.run(source, env={"MLDIAG_ON_FULL": "drop"})
    assert (ended.code, ended.out) == (0, "True\n"), ended.err


@pytest.mark.parametrize(("argument", "variable"), [("'sometimes'", ""), ("3", ""), ("None", "sometimes")])
def test_an_invalid_on_full_is_reported_and_means_drop(argument: str, variable: str, programs: Programs) -> None:
    source = f"""
    from mldiagnostics import machinelearning_run
    from mldiagnostics.pipeline.buffer import CAPACITY, PROCESS
    machinelearning_run("x", log_system_metrics=False, on_full={argument})
    print(PROCESS.capacity == CAPACITY)
    """
    ended = programs.run(source, env={"MLDIAG_ON_FULL": variable})
    assert (ended.code, ended.out) == (0, "True\n"), ended.err
    assert "'drop'" in ended.err
