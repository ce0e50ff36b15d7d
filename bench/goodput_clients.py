"""Measures one goodput client in its own process: `goodput_clients.py CLIENT MODE …` prints JSON.

It runs with the interpreter of the client's environment, so it only imports that client.
"""

import json
import logging
import os
import resource
import sys
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from bench.goodput_jobs import JOB, LOGGER, Payload, payloads, started, time_of

CALLS = 20_000
PACED, PACE_S = 600, 0.005
NEW = 30
WINDOWS_S = (3600, 86_400, 432_000)

Figures = dict[str, float]


class Calculator(Protocol):
    """Methods of both calculators."""

    def get_job_goodput(self, include_badput_breakdown: bool = ...) -> Any: ...
    def get_job_goodput_interval(self, interval_start: datetime, interval_end: datetime) -> Any: ...
    def get_step_deviation(self) -> Any: ...


class Client(Protocol):
    """A calculator over a log that grows."""

    def calculator(self) -> Calculator:
        """Return a new calculator that has read nothing."""

    def log(self, payload: Payload) -> None:
        """Add an entry to the log."""

    next_step: int


def main(client: str, mode: str, *rest: str) -> None:
    print(json.dumps(MEASURES[mode](client, *rest)))
    sys.stdout.flush()
    os._exit(0)


def queries(name: str, profile: str, steps: str, folder: str) -> Figures:
    """Measure the first query, queries after new entries, and memory."""
    logging.disable()
    client = CLIENTS[name](Path(folder), profile, int(steps))
    before = _rss_mib()
    calculator, cold_s = client.calculator(), time.process_time()
    goodput = calculator.get_job_goodput(include_badput_breakdown=True)[0]
    cold_s = time.process_time() - cold_s
    peak = _peak_mib()
    new_s = _after_new_entries(client, lambda: calculator.get_job_goodput(include_badput_breakdown=True))
    return {"goodput": goodput, "cold_s": cold_s, "new_s": new_s, "peak_mib": peak, "own_mib": peak - before}


def others(name: str, profile: str, steps: str, folder: str) -> Figures:
    """Measure step deviation and rolling windows, first and after a new entry."""
    logging.disable()
    figures: Figures = {}
    client = CLIENTS[name](Path(folder), profile, int(steps))
    for mode, query in OTHERS.items():
        start = time.process_time()
        calculator = client.calculator()
        query(calculator)
        figures[f"{mode}.cold_s"] = time.process_time() - start
        figures[f"{mode}.new_s"] = _after_new_entries(client, partial(query, calculator))
    return figures


def recording(name: str, folder: str) -> Figures:
    """Measure calls without a pause, and 200 a second as in a training loop."""
    record, finish = RECORDERS[name](Path(folder))
    cpu = time.process_time()
    figures = {f"burst.{share}": value for share, value in _quantiles(record, CALLS, 0).items()}
    finish()
    figures["cpu_us"] = (time.process_time() - cpu) / CALLS * 1e6
    figures |= {f"paced.{share}": value for share, value in _quantiles(record, PACED, PACE_S).items()}
    return figures


def _quantiles(record: Callable[[int], object], calls: int, pause_s: float) -> Figures:
    durations_s = []
    for step in range(calls):
        if pause_s:
            time.sleep(pause_s)
        start = time.perf_counter_ns()
        record(step)
        durations_s.append(time.perf_counter_ns() - start)
    durations_s.sort()
    return {f"p{share}_us": durations_s[calls * share // 100] / 1e3 for share in (50, 99)}


def _windows(calculator: Calculator) -> None:
    now = datetime.now(UTC)
    for seconds in WINDOWS_S:
        with suppress(ValueError):  # the peer refuses 100 % where its rounding makes it a little more; so its monitor
            calculator.get_job_goodput_interval(now - timedelta(seconds=seconds), now)


OTHERS: dict[str, Callable[[Calculator], object]] = {
    "deviation": lambda calculator: calculator.get_step_deviation(),
    "windows": _windows,
}


def _after_new_entries(client: Client, query: Callable[[], object]) -> float:
    """Return the median time of a query after a new step, over about 3 s."""
    durations_s: list[float] = []
    for _ in range(NEW):
        moment = round(time.time(), 6)  # as recorders do
        client.log({"job_name": JOB, "step_count": client.next_step, "step_start_time": moment})
        client.next_step += 1
        start = time.process_time()
        query()
        durations_s.append(time.process_time() - start)
        if sum(durations_s) > 3:
            break
    return sorted(durations_s)[len(durations_s) // 2]


def _rss_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def _peak_mib() -> float:
    """Return the peak memory of this program; `ru_maxrss` would include the parent's."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def peer_module() -> Any:
    """Return the peer's module, untyped: type checkers find the shim of the same name."""
    return vars(import_module("ml_goodput_measurement"))["goodput"]


class PeerLog:
    """The log service of ml-goodput-measurement in memory, to measure only the peer's work."""

    def __init__(self, folder: Path, profile: str, steps: int) -> None:
        self._module = peer_module()
        self._folder = folder
        self.next_step = steps
        self._entries = list(payloads(profile, steps, started(profile, steps, time.time())))
        self._times = [time_of(entry) for entry in self._entries]

    def calculator(self) -> Calculator:
        cache = tempfile.mkdtemp(dir=self._folder)
        calculator: Calculator = self._module.GoodputCalculator(JOB, LOGGER, cloud_logger=self, cache_dir=cache)
        return calculator

    def log(self, payload: Payload) -> None:
        self._entries.append(payload)
        self._times.append(time_of(payload))

    def read_cloud_logging_entries(
        self, start_time: datetime | None = None, end_time: datetime | None = None, last_entry_info: Any = None
    ) -> tuple[Sequence[Payload], tuple[datetime | None, str | None]]:
        start = last_entry_info[0] if last_entry_info else start_time
        first = bisect_right(self._times, start.timestamp()) if start else 0
        last = bisect_right(self._times, end_time.timestamp()) if end_time else len(self._times)
        if first >= last:
            return [], (None, None)
        return self._entries[first:last], (datetime.fromtimestamp(self._times[last - 1], UTC), str(last))


class OwnLog:
    """A log of mldiagnostics on disk, written by `goodput_logs`, appended like a recorder."""

    def __init__(self, folder: Path, _: str, steps: int) -> None:
        from mldiagnostics.goodput import GoodputCalculator

        self._class = GoodputCalculator
        self._folder = folder
        self.next_step = steps
        self._last = max(folder.glob("records/*.jsonl"))
        self._number = 4 * steps

    def calculator(self) -> Calculator:
        return self._class(JOB, LOGGER, log=self._folder, cache_dir=self._folder / "cache")

    def log(self, payload: Payload) -> None:
        from bench.goodput_logs import line

        self._number += 1
        with self._last.open("a") as file:
            file.write(line(payload, self._number))


def nothing(_: Path) -> tuple[Callable[[int], object], Callable[[], object]]:
    def record_step_start_time(step: int, start_time: datetime | None = None) -> None:
        pass

    return record_step_start_time, lambda: None


def peer_recorder(_: Path) -> tuple[Callable[[int], object], Callable[[], object]]:
    """Return the peer's recorder with a logging client that drops its entries."""
    import google.cloud.logging

    google.cloud.logging.Client = _NoCloud
    recorder = peer_module().GoodputRecorder(JOB, LOGGER, logging_enabled=True)
    return recorder.record_step_start_time, recorder.flush


def own_recorder(folder: Path) -> tuple[Callable[[int], object], Callable[[], object]]:
    from mldiagnostics.goodput import GoodputRecorder

    recorder = GoodputRecorder(JOB, LOGGER, logging_enabled=True, log=folder)
    recorder.record_job_start_time()
    recorder.flush()
    return recorder.record_step_start_time, recorder.flush


def own_disabled(_: Path) -> tuple[Callable[[int], object], Callable[[], object]]:
    from mldiagnostics.goodput import GoodputRecorder

    return GoodputRecorder(JOB, LOGGER).record_step_start_time, lambda: None


def peer_disabled(_: Path) -> tuple[Callable[[int], object], Callable[[], object]]:
    return peer_module().GoodputRecorder(JOB, LOGGER).record_step_start_time, lambda: None


class _NoCloud:
    """Client, logger and batch of Google's logging library that drop their entries."""

    project = "bench"
    entries: tuple[()] = ()

    def __init__(self) -> None:
        self._handlers: set[object] = set()

    def logger(self, *_: Any, **__: Any) -> "_NoCloud":
        return self

    batch = log = log_struct = commit = logger


MEASURES: dict[str, Callable[..., Figures]] = {"queries": queries, "others": others, "recording": recording}
CLIENTS: dict[str, Callable[[Path, str, int], Client]] = {"mldiagnostics": OwnLog, "peer": PeerLog}
RECORDERS: dict[str, Callable[[Path], tuple[Callable[[int], object], Callable[[], object]]]] = {
    "floor": nothing,
    "mldiagnostics": own_recorder,
    "mldiagnostics-disabled": own_disabled,
    "peer": peer_recorder,
    "peer-disabled": peer_disabled,
}

if __name__ == "__main__":
    main(*sys.argv[1:])
