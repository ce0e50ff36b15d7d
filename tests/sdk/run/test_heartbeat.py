"""The thread that tells: nothing is missed, nothing stops it, and waiting has an end."""

from __future__ import annotations

import threading
from queue import Queue

import pytest
from mldiagnostics.run.heartbeat import HeartbeatThread
from support.programs import eventually


class Told:
    """What a reporter has done, in order."""

    def __init__(self, *, interval_s: float = 3600.0, failing: str = "") -> None:
        self.acts: list[str] = []
        self._failing = failing
        self.reporter = HeartbeatThread(
            interval_s=interval_s,
            beat=lambda: self._act("beat"),
            write=lambda: self._act("write"),
        )

    def _act(self, name: str) -> None:
        self.acts.append(name)
        if name == self._failing:
            raise RuntimeError(name)


def test_it_writes_first_and_last() -> None:
    told = Told()
    told.reporter.start()
    assert told.reporter.sync(30)
    assert told.reporter.finish(30)
    assert told.acts[0] == "write"
    assert told.acts[-1] == "write"
    assert "beat" in told.acts


def test_who_waits_for_a_beat_need_not_wait_for_a_write() -> None:
    told = Told()
    told.reporter.start()
    assert told.reporter.sync(30)
    before = len(told.acts)
    assert told.reporter.sync(30, write=False)
    assert told.acts[before : before + 1] == ["beat"]
    assert told.reporter.finish(30)


@pytest.mark.parametrize("failing", ["beat", "write"])
def test_what_fails_is_told_and_the_rest_goes_on(failing: str) -> None:
    told = Told(failing=failing)
    told.reporter.start()
    assert told.reporter.sync(30)
    before = len(told.acts)
    assert told.reporter.sync(30)
    assert told.acts[before:] == ["beat", "write"]
    assert told.reporter.finish(30)


def test_it_beats_by_itself() -> None:
    told = Told(interval_s=0.01)
    told.reporter.start()
    eventually(lambda: told.acts.count("beat") >= 3)
    assert told.reporter.finish(30)


def test_a_thousand_changes_are_few_writes_and_the_last_one_is_written() -> None:
    state, seen = [0], Queue[int]()
    reporter = HeartbeatThread(interval_s=3600, beat=lambda: None, write=lambda: seen.put(state[0]))
    reporter.start()
    assert reporter.sync(30)
    for count in range(1, 1001):
        state[0] = count
        reporter.wake()
    written = []
    while not written or written[-1] != 1000:
        written.append(seen.get(timeout=30))
    assert len(written) < 100
    assert reporter.finish(30)


def test_waiting_for_a_write_that_hangs_ends() -> None:
    hanging = threading.Event()
    reporter = HeartbeatThread(interval_s=3600, beat=lambda: None, write=hanging.wait)
    reporter.start()
    assert not reporter.sync(0.05)
    assert not reporter.finish(0.05)
    hanging.set()
    assert reporter.finish(30)


def test_one_that_never_began_has_nothing_to_wait_for() -> None:
    told = Told()
    assert not told.reporter.sync(0.05)
    assert told.reporter.finish(0.05)
    assert told.acts == []
