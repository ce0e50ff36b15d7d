"""A trace that is written again although a source fails for a time."""

from __future__ import annotations

import errno
import json
import os
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError, StoreError, StoreUnreachable
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.trace import following
from mldiagnostics_cli.trace.export import TraceOptions, write_trace
from mldiagnostics_cli.trace.following import follow_trace
from mldiagnostics_cli.trace.writing import UnwritableTrace
from mldiagnostics_kube.client.failures import ClusterFailure

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Step = Callable[[], object]

FIRST = "2026-11-21T10:00:00Z started\n"
SECOND = "2026-11-21T10:00:01Z ended\n"


class Follower:
    """`mldiag trace --follow` of a log, with a step of the test in each of its pauses."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.out = folder / "a.log", folder / "live.json"
        self.log.write_text(FIRST)
        self.notes: list[str] = []
        self.now = time.time_ns()
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(following, "note", self.notes.append)

    def follow(self, *steps: Step, end: int | None = None) -> None:
        """Follow the log through the steps; then Ctrl-C."""
        waiting = list(steps)

        def pause(_seconds: float) -> None:
            if not waiting:
                raise KeyboardInterrupt
            waiting.pop(0)()

        self._monkeypatch.setattr(following, "time", SimpleNamespace(time_ns=lambda: self.now, sleep=pause))
        options = TraceOptions(end=end)
        follow_trace(SourceChoice(), [str(self.log)], None, options, out=str(self.out), output=OutputFormat.NAME)

    def retries(self) -> list[str]:
        return [note for note in self.notes if note.endswith("; trying again")]

    def messages(self) -> list[str]:
        return [each["name"] for each in json.loads(self.out.read_text())["traceEvents"] if each["ph"] == "i"]


@pytest.fixture
def follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Follower:
    return Follower(tmp_path, monkeypatch)


def wait() -> None:
    """Let a turn pass."""


def test_a_log_that_is_replaced_is_read_again(follower: Follower) -> None:
    log = follower.log
    with pytest.raises(KeyboardInterrupt):
        follower.follow(log.unlink, wait, wait, lambda: log.write_text(FIRST + SECOND), log.unlink, wait)
    assert follower.messages() == ["started", "ended"]
    missing = f"mldiag: {log}: no such file; pass the path of a log, a run, or - for standard input; trying again"
    assert follower.retries() == [missing, missing]  # each time once


@pytest.mark.parametrize(
    "error",
    [
        StoreError("s3://b: slow down"),
        StoreUnreachable("s3://b: no response"),
        ClusterFailure("the API server is not reachable", status=0),
        OSError(errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_a_failure_of_a_source_is_noted_and_the_next_turn_reads_it_again(
    error: Exception, follower: Follower, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: Any) -> None:
        raise error

    def break_down() -> None:
        monkeypatch.setattr(following, "write_trace", broken)

    def recover() -> None:
        monkeypatch.setattr(following, "write_trace", write_trace)
        follower.log.write_text(FIRST + SECOND)

    with pytest.raises(KeyboardInterrupt):
        follower.follow(break_down, wait, recover)
    assert follower.messages() == ["started", "ended"]
    assert follower.retries() == [f"mldiag: {error}; trying again"]


def test_a_log_that_had_no_entry_yet_may_fail_too(follower: Follower) -> None:
    log = follower.log
    log.write_text("")
    with pytest.raises(KeyboardInterrupt):
        follower.follow(log.unlink, lambda: log.write_text(FIRST))
    assert follower.messages() == ["started"]


def test_a_source_must_be_read_at_the_first_and_at_the_last_time(follower: Follower) -> None:
    log = follower.log
    end = follower.now // 1000

    def after_the_end() -> None:
        log.unlink()
        follower.now += 2 * following.LATE_US * 1000

    with pytest.raises(ConfigurationError, match="no such file"):
        follower.follow(after_the_end, end=end)
    assert follower.retries() == []
    with pytest.raises(ConfigurationError, match="no such file"):
        follower.follow()


def test_a_file_that_cannot_be_written_ends_it(follower: Follower) -> None:
    def occupy() -> None:
        follower.out.unlink()
        follower.out.mkdir()

    with pytest.raises(UnwritableTrace, match=r"live\.json"):
        follower.follow(occupy)
