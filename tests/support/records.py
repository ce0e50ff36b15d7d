"""Origins, records and sinks for tests of recordings, and programs that record."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from hypothesis import strategies as st
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import KINDS, Kind, Record, decode
from mldiagnostics.sinks import BatchPolicy, SinkMaker, SinkRefused, SinkUnavailable
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ROOT: Final = Path(__file__).parents[2]
DEADLINE_S: Final = 60.0
RUN: Final = "a" * 64

PROLOGUE: Final = """
import os, signal, sys, threading, time
from mldiagnostics import metrics, sinks
from mldiagnostics.identity.origin import Origin
from mldiagnostics.pipeline import recorder

def begin(*urls, incarnation="0123abcd", rank=0):
    origin = Origin("a" * 64, "test", sys.argv[1], incarnation, "host", rank=rank)
    return recorder.RecordPipeline(origin, [sinks.sink_maker(url) for url in urls or ("jsonl:",)])
"""


def origin(storage: Path | str = "/nowhere", *, incarnation: str = "0123abcd", rank: int = 0) -> Origin:
    """A process of a run, with its files below `storage`."""
    return Origin(RUN, "test", str(storage), incarnation, "host", rank=rank)


class Hostile:
    """A value whose attributes and conversions raise."""

    @override
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    @override
    def __str__(self) -> str:
        raise RuntimeError("str")

    def __float__(self) -> float:
        raise RuntimeError("float")


class ListSink:
    """A sink that keeps all records; if `fault` is set, every call except `close` raises it."""

    durable = False

    def __init__(self, *, batch_policy: BatchPolicy | None = None) -> None:
        self.batch_policy = batch_policy or BatchPolicy()
        self.taken: list[Record] = []
        self.batches: list[int] = []
        self.flushes = 0
        self.closed = False
        self.fault: Exception | None = None

    @property
    def maker(self) -> SinkMaker:
        """Return a maker of this sink."""
        return SinkMaker("list", lambda _: self)

    def open(self) -> None:
        self._fail()

    def write(self, batch: Sequence[Record]) -> None:
        self._fail()
        self.taken.extend(batch)
        self.batches.append(len(batch))

    def flush(self) -> None:
        self._fail()
        self.flushes += 1

    def close(self) -> None:
        self.closed = True

    def _fail(self) -> None:
        if self.fault is not None:
            raise self.fault

    def down(self) -> None:
        """Be unavailable from now on."""
        self.fault = SinkUnavailable("the receiver is down")

    def refuse(self) -> None:
        """Reject everything from now on."""
        self.fault = SinkRefused("the receiver does not want it")

    def up(self) -> None:
        """Work from now on."""
        self.fault = None


class HangingSink(ListSink):
    """A sink that hangs in its first `write` until released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.released = threading.Event(), threading.Event()

    @override
    def write(self, batch: Sequence[Record]) -> None:
        self.entered.set()
        assert self.released.wait(DEADLINE_S)
        super().write(batch)


@contextmanager
def recording_into(*sinks: ListSink, buffer: Buffer | None = None) -> Iterator[RecordPipeline]:
    """Yield a recording with its own buffer, closed at the end."""
    recording = RecordPipeline(origin(), [sink.maker for sink in sinks], buffer=buffer or Buffer())
    try:
        yield recording
    finally:
        recording.close(DEADLINE_S)


def eventually(holds: Callable[[], bool], what: str, *, deadline_s: float = DEADLINE_S) -> None:
    """Poll until a condition holds that other threads or processes bring about."""
    end = time.monotonic() + deadline_s
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {deadline_s:g} s"
        time.sleep(0.02)


def lines(storage: Path) -> list[bytes]:
    """Return the lines of all files of records below `storage`, by file and then in order."""
    files = sorted(storage.glob("*/records/*.jsonl"))
    return [line for file in files for line in file.read_bytes().splitlines(keepends=True)]


def records_in(storage: Path, *, kind: Kind | None = "metric") -> list[Record]:
    """Return the records below `storage`, of one kind or of all except the heads of files."""
    records = [decode(line) for line in lines(storage)]
    return [each for each in records if (each.kind == kind if kind else each.name != "segment")]


def program(body: str, storage: Path, *options: str) -> subprocess.Popen[str]:
    """Start a Python process, with `options`, that records: `begin(*urls)` starts a recording into `storage`."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "sdk/src"), "MLDIAG_SPOOL": str(storage / "spool")}
    return subprocess.Popen(
        [sys.executable, "-u", *options, "-c", PROLOGUE + body, str(storage)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_program(body: str, storage: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run such a process to completion."""
    process = program(body, storage, *options)
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"it did not end: {process.communicate()}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def texts() -> st.SearchStrategy[str]:
    """Return a strategy of texts that can be stored: any Unicode except lone surrogates."""
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


def json_values() -> st.SearchStrategy[object]:
    """Return a strategy of JSON values without NaN, which is not equal to itself."""
    leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | texts()
    return st.recursive(
        leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(), inner, max_size=3), max_leaves=10
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Records of every kind."""
    numbers = st.floats(allow_nan=False)
    return Record(
        kind=cast("Kind", draw(st.sampled_from(sorted(KINDS)))),
        t=draw(st.floats(0, 4e9)),
        name=draw(texts()),
        value=draw(st.none() | numbers | st.lists(numbers, max_size=4).map(tuple)),
        step=draw(st.none() | st.integers(-(2**63), 2**63)),
        labels=draw(st.dictionaries(texts(), texts(), max_size=3)),
        rank=draw(st.integers(0, 100_000)),
        attempt=draw(st.integers(0, 1000)),
        unit=draw(st.sampled_from(["", "1", "%", "s"])),
        payload=draw(st.none() | st.dictionaries(texts(), json_values(), max_size=3)),
    )
