"""A clock that is set while a process records costs the account nothing, and is named."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.goodput import GoodputCalculator
from mldiagnostics.goodput.events.clocks import CLOCK_STEP, Clocks
from mldiagnostics.goodput.events.conversion import payload_of
from mldiagnostics.goodput.events.event import CheckpointEvent, EventCode
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.log.callback_log import CallbackLog
from mldiagnostics.goodput.render.table import table
from mldiagnostics.goodput.snapshots.snapshot import keep, recall
from mldiagnostics.pipeline.records import Record, encode
from support.goodput.histories import dice, jobs
from support.goodput.logs import LOGGER, NOW, EventCollector, events_in, log_of, run_program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from random import Random

    from mldiagnostics.goodput.events.event import Event
    from support.goodput.truth import Job

HOUR = 3_600_000_000
MACHINE = """
import time
class Machine:  # the clocks of a host: one that is set, and one that nobody sets
    steady, ahead = 1000.0, 1_735_689_600.0
machine = Machine()
time.time = lambda: machine.steady + machine.ahead
time.monotonic = lambda: machine.steady
time.clock_gettime = lambda clock: machine.steady
def passes(seconds): machine.steady += seconds
"""


def trained(folder: Path, step_s: float) -> GoodputCalculator:
    """A job of 400 steps of 10 s; the host's clock is set by `step_s` seconds during step 152."""
    body = f"""
recorder = begin()
recorder.record_job_start_time()
for step in range(400):
    recorder.record_step_start_time(step)
    passes(5.0)
    machine.ahead += {step_s} if step == 152 else 0
    passes(5.0)
recorder.record_job_end_time()
recorder.flush()
"""
    run_program(body, folder, before=MACHINE)
    return GoodputCalculator("job", LOGGER, log=log_of(folder))


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0, -0.2, 0.0])
def test_a_job_without_loss_has_none_when_the_clock_is_set(tmp_path: Path, step_s: float) -> None:
    calculator = trained(tmp_path, step_s)
    goodput, _, last_step = calculator.get_job_goodput()
    assert (goodput, last_step) == (pytest.approx(100), 399)
    report = calculator.report()
    assert report.cumulative.elapsed_s == pytest.approx(4000)
    assert report.disruptions == ()
    assert max(calculator.get_step_deviation().values()) < 1e-3
    assert list(report.corrected.values()) == ([154] if step_s else [])  # the job's start, and steps 0 to 152
    assert all(f"moved by {step_s:+,.3f} s" in reason for reason in report.corrected)
    assert ("corrected in the log" in table(report)) == bool(step_s)
    assert report.started == pytest.approx(1_735_689_600 + 1000 + step_s)  # by the clock as it is now


def test_a_clock_that_is_set_again_and_again_leaves_a_process_and_its_next_one_apart(tmp_path: Path) -> None:
    body = """
for first, ahead in ((0, 7200.0), (3, -7200.0)):
    recorder = begin()
    recorder.record_job_start_time()
    for step in range(first, first + 3):
        passes(10.0)
        machine.ahead += ahead / 2
        recorder.record_step_start_time(step)
    passes(10.0)
    machine.ahead -= ahead * 1.5
    recorder.record_step_end_time(first + 2)
    recorder.close()
"""
    run_program(body, tmp_path, before=MACHINE)
    events = sorted(events_in(log_of(tmp_path)).events)
    starts = [event.t for event in events if event.code in (EventCode.JOB_START, EventCode.STEP_START)]
    assert [later - earlier for earlier, later in pairwise(starts)] == [10_000_000] * 7


@pytest.mark.parametrize("moment", ["time.monotonic()", "time.perf_counter()", "12", "0.5"])
def test_a_moment_of_a_clock_that_is_not_of_the_day_is_now(tmp_path: Path, moment: str) -> None:
    body = f"recorder = begin(); recorder.record_job_start_time({moment}); recorder.flush()"
    _, warned = run_program(body, tmp_path, before=MACHINE)
    (event,) = events_in(log_of(tmp_path)).events
    assert event.t == (1_735_689_600 + 1000) * 1_000_000
    assert "not POSIX seconds" in warned
    assert "time.time()" in warned


def recorded_logs(job: Job, random: Random) -> tuple[list[list[dict[str, Any]]], list[Event]]:
    """Return logs of two processes of a job with clocks that are changed, and the events by their final clocks."""
    logs: list[list[dict[str, Any]]] = []
    true = []
    cut = random.randint(0, len(job.events))
    for process, events in (("0a", job.events[:cut]), ("0b", job.events[cut:])):
        steps = [random.choice([0, 0, 0, -HOUR, HOUR, 70_000]) for _ in events]
        payloads, number = [], 0
        for place, event in enumerate(events):
            if steps[place]:
                number += 1
                payloads.append({"job_name": "job", CLOCK_STEP: steps[place], "event_id": f"{process}-{number}"})
            number += 1
            by = -sum(steps[place + 1 :])
            payload = payload_of(_moved(event, by), "job")
            payloads.append({**payload, "rank": event.rank, "event_id": f"{process}-{number}"})
            true.append(event)
        logs.append(payloads)
    return logs, true


def _moved(event: Event, by: int) -> Event:
    arg = event.arg._replace(until=event.arg.until + by) if isinstance(event.arg, CheckpointEvent) else event.arg
    return event._replace(t=event.t + by, arg=arg)


def key(event: Event) -> str:
    return repr(event._replace(run=""))


def same(corrected: Sequence[Event], true: Sequence[Event]) -> None:
    assert sorted(map(key, corrected)) == sorted(map(key, true))


@given(jobs(), dice(), st.integers(1, 4))
def test_files_are_read_by_the_clock_as_it_is_at_last(
    tmp_path_factory: pytest.TempPathFactory, job: Job, random: Random, parts: int
) -> None:
    """In segments, and while they grow."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "records").mkdir()
    logs, true = recorded_logs(job, random)
    log, listener = open_log(folder), EventCollector()
    for process, payloads in enumerate(logs):
        for number in range(parts):
            file = folder / f"records/a0-r0-0{process}-{number:05}.jsonl"
            share = payloads[len(payloads) * number // parts : len(payloads) * (number + 1) // parts]
            lines = [encode(Record("event", 1e9, "goodput", payload=payload)) for payload in share]
            file.write_text(encode(Record("event", 1e9, "segment", (1.0,), None, {"run": ""}, 0)) + "".join(lines))
            if random.random() < 0.5:
                log.read_new(listener, NOW)
    log.read_new(listener, NOW)
    same(listener.events, true)
    assert not listener.ignored


class Entries:
    """Somebody's log as an object."""

    def __init__(self) -> None:
        self.payloads: list[dict[str, Any]] = []

    def read_cloud_logging_entries(self, *_: object) -> list[dict[str, Any]]:
        return list(self.payloads)


@given(jobs(), dice())
def test_entries_of_a_service_are_read_by_the_clock_as_it_is_at_last(job: Job, random: Random) -> None:
    logs, true = recorded_logs(job, random)
    entries, listener = Entries(), EventCollector()
    log = CallbackLog(entries)
    for payload in (payload for payloads in logs for payload in payloads):
        entries.payloads.append(payload)
        if random.random() < 0.1:
            log.read_new(listener, NOW)
    log.read_new(listener, NOW + timedelta(seconds=1))
    assert {key(event) for event in listener.events} == {key(event) for event in true}


def test_what_was_corrected_is_known_after_a_snapshot(tmp_path: Path) -> None:
    trained(tmp_path, -3600.0)
    folder = log_of(tmp_path)
    log, history = open_log(folder), History()
    log.read_new(history, NOW)
    assert keep(tmp_path / "cache" / "kept", log, history)
    later = open_log(folder)
    recalled = recall(tmp_path / "cache" / "kept", later)
    assert recalled is not None
    later.read_new(recalled, NOW)
    assert recalled.corrected == history.corrected
    assert recalled.clocks.packed() == history.clocks.packed() != {}


@pytest.mark.parametrize(
    "wrong",
    [
        {CLOCK_STEP: 5},
        {CLOCK_STEP: 5, "event_id": 7},
        {CLOCK_STEP: 5, "event_id": "0a"},
        {CLOCK_STEP: 0, "event_id": "0a-1"},
        {CLOCK_STEP: "5", "event_id": "0a-1"},
        {CLOCK_STEP: 10**20, "event_id": "0a-1"},
        {CLOCK_STEP: True, "event_id": "0a-1"},
    ],
)
def test_what_cannot_be_meant_of_a_clock_moves_nothing(wrong: dict[str, Any]) -> None:
    clocks = Clocks()
    clocks.learn(json.loads(json.dumps(wrong)))
    assert not clocks
    assert not clocks.changed
