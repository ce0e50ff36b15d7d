"""Cost of `mldiag`: its help, a list of runs, and a capture of many local processes beside xprofiler's way."""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.capture_clients import addresses
from bench.capture_fanout import fleet
from bench.table import Section

MLDIAG = Path(sys.executable).parent / "mldiag"
REPEATS = 9
RUNS = 1000
TARGETS = 64
SAMPLE = 4
DURATION_S = 1.0
LEAD_S = 2.0
"""Time between the last probe and the common start of all targets, which has a default in the engine."""


@dataclass(frozen=True)
class Cost:
    """Seconds of one command."""

    wall_s: float
    cpu_s: float


def measure() -> Section:
    """Run every command several times and return the medians."""
    load = os.getloadavg()[0]
    rows = [
        _row("floor: python -c ''", [sys.executable, "-c", ""], ""),
        _row("floor: import click", [sys.executable, "-c", "import click"], ""),
        _row("mldiag --help", [MLDIAG, "--help"], "≤ 0.15 s"),
        _row("mldiag runs --help", [MLDIAG, "runs", "--help"], ""),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(RUNS):
            file = Path(folder, f"{number:064x}", "run.json")
            file.parent.mkdir()
            document = {"v": 1, "runId": file.parent.name, "name": f"run {number}", "phase": "Completed"}
            file.write_text(json.dumps(document | {"created": float(number), "step": number}))
        rows.append(_row(f"mldiag runs list, {RUNS} runs", [MLDIAG, "runs", "list", "--storage", folder], "≤ 1 s"))
    rows += _captures()
    return Section(
        name="cli",
        title="The command line",
        columns=("command", "time, s", "CPU time, s", "goal"),
        rows=rows,
        notes=(
            f"Median (lowest-highest) of {REPEATS} processes, on {os.cpu_count()} cores ({platform.machine()}, load "
            f"average {load:.1f} at the start: other work stretches the time of all rows, less their CPU time). Runs "
            f"are in a local directory. The capture is of {TARGETS} profiler servers in one process that shares the "
            f"cores; its rows are the time over the duration of {DURATION_S:g} s and the lead of {LEAD_S:g} s, from "
            f"the start of the process to its end. xprofiler captures one host after another, with XProf's client: "
            f"{SAMPLE} hosts were measured, then scaled."
        ),
    )


def _captures() -> list[tuple[str, ...]]:
    """Capture all targets at once with mldiag, and a few one after another as xprofiler does."""
    with fleet(0) as port:
        captures = [_captured(port, turn, "--no-diagnosis") for turn in range(3)]
        verdicts = [_captured(port, turn) for turn in range(3)]
    print(f"... one host after another ({SAMPLE * 4} s, then scaled)", flush=True)
    with fleet(None) as port:
        command = [sys.executable, "-m", "bench.capture_clients", "one_by_one", str(port), str(SAMPLE)]
        done = subprocess.run([*command, str(int(DURATION_S * 1000))], capture_output=True, text=True, check=True)
    each_s = json.loads(done.stdout)["wall_s"] / SAMPLE
    return [
        (f"mldiag capture --no-diagnosis, {TARGETS} targets, over duration + lead", *_spreads(captures), "≤ 0.5 s"),
        (f"mldiag capture with its verdict, {TARGETS} targets, over duration + lead", *_spreads(verdicts), ""),
        (f"xprofiler's way, {TARGETS} targets, over the duration", f"{each_s * TARGETS - DURATION_S:.0f}", "", ""),
    ]


def _captured(port: int, turn: int, *options: str) -> Cost:
    """Return the cost of a capture of all targets, beyond the time that it records and its lead."""
    print(f"... capture {turn + 1} of 3 {' '.join(options)} (5 to 15 s)", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        places = ["--duration", f"{DURATION_S:g}s", "--log-directory", folder]
        cost = _cost([MLDIAG, "capture", *addresses(port, TARGETS), *places, *options])
        assert len(list(Path(folder).rglob("*.xplane.pb"))) == TARGETS
    return Cost(cost.wall_s - DURATION_S - LEAD_S, cost.cpu_s)


def _row(label: str, command: Sequence[str | Path], goal: str) -> tuple[str, ...]:
    print(f"... {label} ({REPEATS} times)", flush=True)
    _cost(command)  # fills the page cache
    return (label, *_spreads([_cost(command) for _ in range(REPEATS)]), goal)


def _cost(command: Sequence[str | Path]) -> Cost:
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(f"{command[:3]} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def _spreads(costs: Sequence[Cost]) -> tuple[str, str]:
    return _spread([cost.wall_s for cost in costs]), _spread([cost.cpu_s for cost in costs])


def _spread(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} ({min(values):.2f}-{max(values):.2f})"
