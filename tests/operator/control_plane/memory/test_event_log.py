from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mldiagnostics.goodput.events import packing
from mldiagnostics.goodput.events.event import CheckpointEvent, Event, EventCode, SliceCounts
from mldiagnostics.goodput.events.packing import ClockStep, Entry, apply_clock_steps
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics_kube.process.clock import utc_now
from mldiagnostics_operator.control_plane.limits import SEGMENT_S
from mldiagnostics_operator.control_plane.memory import event_log
from mldiagnostics_operator.control_plane.memory.event_log import EventLog, ProcessName
from mldiagnostics_operator.control_plane.memory.packed_events import PackedEvents, repacked
from mldiagnostics_operator.control_plane.slices import finished

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PROCESS = ProcessName(run_id="a" * 64, incarnation="0eab71e5", attempt=0, rank=0)
START = 1_790_000_000_000_000


def story() -> list[Entry]:
    """A job with every shape of argument, and a clock that is set by an hour."""
    codes: list[tuple[EventCode, object]] = [
        (EventCode.JOB_START, 0),
        (EventCode.RESTORE_START, -1),
        (EventCode.RESTORE_END, -1),
        *((EventCode(2 + at % 2), at // 2) for at in range(20)),
        (EventCode.SAVED, CheckpointEvent(START + 40_000_000, 9, "persistent")),
        (EventCode.SLICES, SliceCounts(1, 2, 2)),
        (EventCode.CAUSE, "preemption"),
        (EventCode.CUSTOM_START, "EVALUATION"),
        (EventCode.CUSTOM_END, "EVALUATION"),
    ]
    entries: list[Entry] = [
        Event(START + 1_000_000 * number, code, argument, 0, PROCESS.run_id)  # type: ignore[arg-type]
        for number, (code, argument) in enumerate(codes)
    ]
    hour = 3_600_000_000
    late = Event(START + hour + 60_000_000, EventCode.JOB_END, 0, 0, PROCESS.run_id)
    return [*entries, ClockStep(hour), late]


def test_readers_of_logs_account_for_the_journal_as_for_the_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "SEGMENT_BYTES", 1500)
    entries, log, files = story(), EventLog(), dict[str, bytes]()
    for end in (*range(1, len(entries), 3), len(entries)):
        first = max(0, end - 5)  # known events are repeated
        log.add(PROCESS, packed(entries[first:end], first, log.known))
        segment = log.segment(PROCESS)
        assert segment is not None
        before = files.pop(segment.extends).partition(b"\n")[2] if segment.extends else b""
        files[segment.key] = segment.head + before + segment.lines
        log.written(segment, size=len(files[segment.key]), now=float(end))
        assert log.open_bytes == 0
    assert log.persisted == log.known == len(entries)
    assert 2 < len(files) < 10
    (tmp_path / "records").mkdir()
    for key, content in files.items():
        (tmp_path / key).write_bytes(content)
    history, expected = History(), History()
    open_log(str(tmp_path)).read_new(history, utc_now())
    for event in apply_clock_steps(entries):
        expected.add(event)
    end_us = START + 2 * 3_600_000_000
    assert not history.ignored
    assert history.of(end_us).account(end_us) == expected.of(end_us).account(end_us)
    assert expected.of(end_us).account(end_us).productive > 0


def packed(entries: list[Entry], first: int, known: int) -> PackedEvents:
    items = json.dumps(packing.pack(entries)).encode()
    return finished(repacked(items, first, known, most=1000, most_bytes=100_000))


def test_a_log_behind_a_gap_takes_nothing_and_known_events_count_once() -> None:
    entries, log = story(), EventLog(persisted=4)
    assert log.add(PROCESS, packed(entries[5:], 5, log.known)) == 0
    assert log.add(PROCESS, packed(entries[:4], 0, log.known)) == 0
    assert log.segment(PROCESS) is None
    late = packed(entries[:6], 0, log.known)
    assert log.add(PROCESS, late) == 2
    assert log.add(PROCESS, late) == 0  # packed before the others were known
    assert log.known == 6


def test_an_open_segment_closes_by_time() -> None:
    entries, log = story(), EventLog()
    keys = []
    for end, now in ((1, 0.0), (2, 10.0), (3, SEGMENT_S), (4, SEGMENT_S + 10)):
        log.add(PROCESS, packed(entries[log.known : end], log.known, log.known))
        segment = log.segment(PROCESS)
        assert segment is not None
        keys.append(segment.extends)
        log.written(segment, size=100, now=now)
    assert [bool(key) for key in keys] == [False, True, True, False]
