"""The processor time of a goodput monitor's process, per interval and per event."""

import logging
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from mldiagnostics.compat.monitoring import GCPOptions, GoodputMonitor

from bench.goodput_jobs import JOB, LOGGER
from bench.goodput_logs import line
from bench.table import Section

ROOT = Path(__file__).parents[1]
SIZES = (1000, 100_000)
INTERVAL_S = 1.0
INTERVALS = 20
EVENTS = 1000
WINDOWS_S = [3600, 86_400]
UPLOAD_TIMEOUT_S = 300.0
_OF_PROCESS = 2
"""The kind of a Linux clock that counts the processor time of all threads of a process."""

_OF_EACH_UPLOAD = b"goodput/goodput"
"""A curve with one point for each upload of the whole job."""


def measure() -> Section:
    """Run monitors over logs of several sizes."""
    load = os.getloadavg()[0]
    rows = []
    for steps in SIZES:
        for name, everything in (("goodput", False), ("goodput, step deviation, 2 rolling windows", True)):
            print(f"... monitor of {steps} steps, {name} (about a minute)", flush=True)
            start_s, interval_s, event_s = _measured(steps, everything=everything)
            cells = (f"{start_s:.2f} s", f"{interval_s * 1e3:.1f} ms", f"{event_s * 1e6:.1f} µs")
            rows.append((f"{steps:,} steps: {name}", *cells))
    return Section(
        name="monitor",
        title="The process of a goodput monitor",
        columns=("job so far, uploaders", "start", "for each interval", "for each event"),
        rows=rows,
        notes=(
            f"Processor time of the monitor's process, all threads, on {os.cpu_count()} cores ({os.uname().machine}, "
            f"load average {load:.1f} at the start); it costs the training process nothing. Start: imports, and "
            "reading the log from its beginning, with three entries per step. For each interval: a read without new "
            f"events and an upload to TensorBoard, mean of {INTERVALS} intervals of {INTERVAL_S:g} s. For each event: "
            f"{EVENTS} new steps in each of them, less the cost of the interval. This includes reading and "
            "accounting, and with step deviation a point of a curve for each step. "
            "A monitor that uploads every 30 s costs a "
            "thirtieth of an interval per second."
        ),
    )


def _measured(steps: int, *, everything: bool) -> tuple[float, float, float]:
    """Return the seconds of processor time for the start, for an interval, and for an event."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        _write(log, steps)
        with _monitored(Path(folder), everything=everything) as clock:
            uploads = Uploads(Path(folder) / "tensorboard", clock)
            start_s = uploads.settled()
            idle_s, number = uploads.spent(lambda: None)
            interval_s = idle_s / number
            busy_s, number = uploads.spent(Steps(log, steps).add)
    return start_s, interval_s, (busy_s - number * interval_s) / (INTERVALS * EVENTS)


def _write(log: Path, steps: int) -> None:
    command = [sys.executable, "bench/goodput_logs.py", "maxtext", str(steps), str(log)]
    subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


@contextmanager
def _monitored(folder: Path, *, everything: bool) -> Iterator[int]:
    """Run a monitor that uploads every second; yield the clock of its process."""
    logging.disable()
    monitor = GoodputMonitor(
        JOB,
        LOGGER,
        str(folder / "tensorboard"),
        INTERVAL_S,
        monitoring_enabled=True,
        include_badput_breakdown=True,
        include_step_deviation=everything,
        step_deviation_interval_seconds=INTERVAL_S,
        gcp_options=GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False),
        skip_final_flush=True,
        cache_dir=str(folder / "cache"),
        log=str(folder / "log"),
    )
    before = _children()
    monitor.start_goodput_uploader()
    if everything:
        monitor.start_step_deviation_uploader()
        monitor.start_rolling_window_goodput_uploader(WINDOWS_S)
    (pid,) = _children() - before
    try:
        yield (~pid << 3) | _OF_PROCESS
    finally:
        monitor.stop_goodput_uploader()
        monitor.stop_step_deviation_uploader()
        monitor.stop_rolling_window_goodput_uploader()


def _children() -> set[int]:
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


class Uploads:
    """The uploads of a monitor, detected by its growing event files."""

    def __init__(self, folder: Path, clock: int) -> None:
        self._folder, self._clock = folder, clock
        self._size = 0

    def settled(self) -> float:
        """Return the processor time until the existing log is uploaded."""
        spent = [self.next()]
        for _ in range(INTERVALS):
            spent.append(self.next())
            last = [after - before for before, after in pairwise(spent[-4:])]
            if len(last) == 3 and max(last) < 2 * min(last):
                return spent[-4]
        raise RuntimeError(f"the monitor did not settle within {INTERVALS} intervals")

    def spent(self, before_each: Callable[[], None]) -> tuple[float, int]:
        """Return the processor time of some waits for uploads, and the number of uploads in it.

        The uploaders drift apart, so that one wait may see more than one upload.
        """
        start, before = self.next(), self._uploads()
        end = start
        for _ in range(INTERVALS):
            before_each()
            end = self.next()
        return end - start, self._uploads() - before

    def next(self) -> float:
        """Wait for the uploads of the next interval; return the processor time of the process so far."""
        deadline = time.monotonic() + UPLOAD_TIMEOUT_S
        while (size := self._bytes()) == self._size:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the monitor uploaded nothing for {UPLOAD_TIMEOUT_S:g} s")
            time.sleep(0.02)
        while size != self._size:  # the uploaders run one after the other
            self._size = size
            time.sleep(INTERVAL_S / 2)
            size = self._bytes()
        return time.clock_gettime(self._clock)

    def _bytes(self) -> int:
        return sum(file.stat().st_size for file in self._events())

    def _uploads(self) -> int:
        return sum(file.read_bytes().count(_OF_EACH_UPLOAD) for file in self._events())

    def _events(self) -> Iterator[Path]:
        return self._folder.rglob("events.*")


class Steps:
    """New steps at the end of a log."""

    def __init__(self, log: Path, number: int) -> None:
        self._file = max(log.glob("records/*.jsonl"))
        self._next = number

    def add(self) -> None:
        """Append the steps of one interval, up to now."""
        now, first = time.time(), self._next
        self._next += EVENTS
        with self._file.open("a") as file:
            for step in range(first, self._next):
                moment = round(now - (self._next - step) / EVENTS / 2, 6)
                file.write(line({"job_name": JOB, "step_count": step, "step_start_time": moment}, step))
