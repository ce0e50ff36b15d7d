"""Goodput logs for tests: a collector of events, and processes that record."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.goodput.events.clocks import Clocks
from mldiagnostics.goodput.events.event import Event, EventCode
from mldiagnostics.goodput.log import open_log
from mldiagnostics.pipeline.records import decode

if TYPE_CHECKING:
    from array import array

    from mldiagnostics.goodput.log import Log
    from mldiagnostics.pipeline.records import Record

NOW: Final = datetime(2026, 11, 21, tzinfo=timezone.utc)
LOGGER: Final = "goodput_job"
PROLOGUE: Final = """
import os, signal, sys, threading, time
from datetime import datetime, timezone
from mldiagnostics.goodput.recording.elastic_recorder import ElasticGoodputRecorder
from mldiagnostics.goodput.recording.recorder import GoodputRecorder

def begin(job="job", **options):
    return GoodputRecorder(job, "goodput_job", logging_enabled=True, **options)
"""


class EventCollector:
    """A handler that keeps all events of a reader in their order."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.ignored: Counter[str] = Counter()
        self.corrected: Counter[str] = Counter()
        self.clocks = Clocks()
        self.bulk = 0

    def add(self, event: Event) -> None:
        self.events.append(event)

    def extend(self, times: array[int], codes: bytes, args: array[int], *, rank: int = 0, run: str = "") -> None:
        self.bulk += len(times)
        columns = zip(times, codes, args, strict=True)
        self.events.extend(Event(t, EventCode(code), arg, rank, run) for t, code, arg in columns)

    def begin_again(self) -> bool:
        changed, self.clocks.changed = self.clocks.changed, False
        if changed:
            self.events.clear()
            self.ignored.clear()
            self.corrected.clear()
        return changed

    @property
    def pairs(self) -> list[tuple[EventCode, Any]]:
        """Code and argument of all events, without time and rank."""
        return [(event.code, event.arg) for event in self.events]

    def steps(self) -> list[Any]:
        """Return the indices of the steps that started."""
        return [event.arg for event in self.events if event.code is EventCode.STEP_START]


def events_in(log: Log | str | Path) -> EventCollector:
    """Read a log to its end and return its events."""
    collector = EventCollector()
    (open_log(log) if isinstance(log, str | Path) else log).read_new(collector, NOW)
    return collector


def lines(log: Path) -> list[bytes]:
    """Return the lines of all files of a log."""
    return [line for file in sorted(log.glob("records/*.jsonl")) for line in file.read_bytes().splitlines()]


def recorded(log: Path) -> list[Record]:
    """Return the records of a log, without the heads of files."""
    return [record for record in map(decode, lines(log)) if record.name != "segment"]


def spoil(log: Path) -> None:
    """Make a file unreadable but for its end, so that only who need not read it again can answer."""
    kept = b"".join(log.read_bytes().splitlines(keepends=True)[-2:])
    log.write_bytes(b"#" * (log.stat().st_size - len(kept) - 1) + b"\n" + kept)


def program(
    body: str, folder: Path, *, options: tuple[str, ...] = (), before: str = "", **env: str
) -> subprocess.Popen[str]:
    """Start a Python process that records: `begin()` makes a recorder, its log is below `folder`/logs.

    `before` runs before anything of ours is imported.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[3] / "sdk/src"),
        "MLDIAG_SPOOL": str(folder / "spool"),
        "MLDIAG_GOODPUT_LOG": str(folder / "logs"),
        **env,
    }
    return subprocess.Popen(
        [sys.executable, "-u", *options, "-c", before + PROLOGUE + body],
        env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_program(
    body: str, folder: Path, *, options: tuple[str, ...] = (), before: str = "", **env: str
) -> tuple[str, str]:
    """Run such a process to completion; return its output on both streams."""
    process = program(body, folder, options=options, before=before, **env)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, err
    return out, err


def log_of(folder: Path, job: str = "job") -> Path:
    """Return the path of the log of such a process."""
    return folder / "logs" / LOGGER / job
