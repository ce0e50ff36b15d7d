"""The heartbeat thread misses no change, survives errors, and waits with a limit."""

from __future__ import annotations

import threading
from queue import Queue

import pytest
from mldiagnostics.run.heartbeat import HeartbeatThread
from support.programs.processes import eventually


class Calls:
    """Calls of a heartbeat thread, in order."""

    def __init__(self, *, interval_s: float = 3600.0, failing: str = "") -> None:
        self.acts: list[str] = []
        self._failing = failing
        self.thread = HeartbeatThread(
            interval_s=interval_s,
            beat=lambda: self._act("beat"),
            write=lambda: self._act("write"),
        )

    def _act(self, name: str) -> None:
        self.acts.append(name)
        if name == self._failing:
            raise RuntimeError(name)


def test_a_heartbeat_is_written_first_and_last() -> None:
    calls = Calls()
    calls.thread.start()
    assert calls.thread.sync(30)
    assert calls.thread.finish(30)
    assert calls.acts[0] == "write"
    assert calls.acts[-1] == "write"
    assert "beat" in calls.acts


def test_who_waits_for_a_beat_need_not_wait_for_a_write() -> None:
    calls = Calls()
    calls.thread.start()
    assert calls.thread.sync(30)
    before = len(calls.acts)
    assert calls.thread.sync(30, write=False)
    assert calls.acts[before : before + 1] == ["beat"]
    assert calls.thread.finish(30)


@pytest.mark.parametrize("failing", ["beat", "write"])
def test_a_failing_callback_is_reported_and_the_thread_continues(failing: str) -> None:
    calls = Calls(failing=failing)
    calls.thread.start()
    assert calls.thread.sync(30)
    before = len(calls.acts)
    assert calls.thread.sync(30)
    assert calls.acts[before:] == ["beat", "write"]
    assert calls.thread.finish(30)


def test_the_thread_beats_at_intervals() -> None:
    calls = Calls(interval_s=0.01)
    calls.thread.start()
    eventually(lambda: calls.acts.count("beat") >= 3)
    assert calls.thread.finish(30)


def test_a_thousand_changes_are_few_writes_and_the_last_one_is_written() -> None:
    state, seen = [0], Queue[int]()
    thread = HeartbeatThread(interval_s=3600, beat=lambda: None, write=lambda: seen.put(state[0]))
    thread.start()
    assert thread.sync(30)
    for count in range(1, 1001):
        state[0] = count
        thread.wake()
    written = []
    while not written or written[-1] != 1000:
        written.append(seen.get(timeout=30))
    assert len(written) < 100
    assert thread.finish(30)


def test_waiting_for_a_write_that_hangs_ends() -> None:
    hanging = threading.Event()
    thread = HeartbeatThread(interval_s=3600, beat=lambda: None, write=hanging.wait)
    thread.start()
    assert not thread.sync(0.05)
    assert not thread.finish(0.05)
    hanging.set()
    assert thread.finish(30)


def test_a_thread_that_never_started_is_not_waited_for() -> None:
    calls = Calls()
    assert not calls.thread.sync(0.05)
    assert calls.thread.finish(0.05)
    assert calls.acts == []
