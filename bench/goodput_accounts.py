"""The cost of goodput, compared with ml-goodput-measurement; the clients are in `goodput_clients`."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from support.programs.environments import interpreter

from bench.sdk_records import IMPORT, slow_down
from bench.table import Section

ROOT = Path(__file__).parents[1]
PEER = "peer-goodput"
ROUNDS = 5
SIZES = (10_000, 100_000, 1_000_000)
LARGEST = 10_000_000
OF_OTHERS = 100_000
CLIENTS = ("mldiagnostics", "peer")

Figures = dict[str, float]
Row = tuple[str, ...]


def measure() -> Section:
    """Run every client in its own process, in turns; large jobs once, recorders several times."""
    load = os.getloadavg()[0]
    rows = [*_recording(), *_imports(), *_cold_and_new(), *_largest(), *_profiles(), *_others(), *_steps()]
    return Section(
        name="goodput",
        title="Goodput of a running job",
        columns=("figure", "mldiagnostics", "ml-goodput-measurement 0.2.3", "floor: does nothing", "goal"),
        rows=rows,
        notes=(
            f"Each client in its own process, in turns, on {os.cpu_count()} cores ({platform.machine()}, load "
            f"average {load:.1f} at the start). Queries are `get_job_goodput(include_badput_breakdown=True)` of a "
            "running job with steps of 2 s and three entries per step (start and end of a load, start of the step) "
            "unless another profile is named; times are processor time. mldiagnostics reads and parses its log from "
            "files; the peer's log is a list in memory, so that only its own work is measured. A new entry is a step; "
            "median of up to 30. Memory is the peak of the process, in brackets its increase since before the first "
            f"query. Recording: 20 000 calls without a pause, and 600 at 200 a second, medians of {ROUNDS} rounds; the "
            "peer has a logging client that drops its entries. Rolling windows: 1 h, 1 d and 5 d. Steps: blocks with a "
            "recorder and a monitor that uploads everything every second, and without, in alternating pairs."
        ),
    )


def _recording() -> list[Row]:
    names = ("mldiagnostics", "mldiagnostics-disabled", "peer", "peer-disabled", "floor")
    figures: dict[str, list[Figures]] = {name: [] for name in names}
    for number in range(ROUNDS):
        print(f"... recorders, round {number + 1} of {ROUNDS} (about 25 s)", flush=True)
        for name in names:
            figures[name].append(_client(name, "recording"))
    medians = {name: _median(rounds) for name, rounds in figures.items()}

    def row(measure_name: str, figure: str, goal: str = "", state: str = "", digits: int = 2) -> Row:
        cells = (medians[name][figure] for name in (f"mldiagnostics{state}", f"peer{state}", "floor"))
        return (measure_name, *(f"{cell:.{digits}f}" for cell in cells), goal)

    return [
        row("recorder call, without a pause, p50, µs", "burst.p50_us", "floor + 2"),
        row("recorder call, without a pause, p99, µs", "burst.p99_us"),
        row("recorder call, 200 a second, p50, µs", "paced.p50_us"),
        row("recorder call, 200 a second, p99, µs", "paced.p99_us"),
        row("CPU of the process for each call, µs", "cpu_us", digits=1),
        row("call of a disabled recorder, p50, µs", "burst.p50_us", "floor + 0.05", "-disabled"),
    ]


def _imports() -> list[Row]:
    programs = {
        "mldiagnostics": ("from mldiagnostics import goodput; goodput.GoodputRecorder", "mldiagnostics"),
        "sdk": ("import mldiagnostics", "mldiagnostics"),
        "peer": ("from ml_goodput_measurement import goodput; goodput.GoodputRecorder", "ml_goodput_measurement"),
    }
    figures: dict[str, list[Figures]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, (statement, own) in programs.items():
            program = IMPORT.format(statement=statement, run="", own=own)
            figures[name].append(_json([_python(name), "-c", program]))
    ours, sdk, peer = (_median(figures[name]) for name in programs)
    return [
        ("import of goodput and its recorder, ms", f"{ours['wall_ms']:.0f}", f"{peer['wall_ms']:.0f}", "", ""),
        ("the same, over the import of mldiagnostics, ms", f"{ours['wall_ms'] - sdk['wall_ms']:.0f}", "", "", "≤ 30"),
        ("import, MiB", f"{ours['rss_mib']:.1f}", f"{peer['rss_mib']:.1f}", "", ""),
        ("third-party packages loaded", f"{ours['foreign']:.0f}", f"{peer['foreign']:.0f}", "", "0"),
    ]


def _cold_and_new() -> list[Row]:
    rows: list[Row] = []
    for steps in SIZES:
        ours, peer = _compare("queries", "maxtext", steps)
        last = steps == SIZES[-1]
        rows += [
            (f"{steps:,} steps: first query", _seconds(ours["cold_s"]), _seconds(peer["cold_s"]), "", "≤ ¼" * last),
            (
                f"{steps:,} steps: query after a new entry",
                *(_seconds(each["new_s"]) for each in (ours, peer)),
                "",
                "≤ 100 µs" * last,
            ),
            (f"{steps:,} steps: memory, MiB", *map(_memory, (ours, peer)), "", "≤ 300" * last),
        ]
        if last:
            rows.append(
                (f"{steps:,} steps: first query, from a snapshot", _seconds(ours["kept.cold_s"]), "", "", "≤ 0.2 s")
            )
    return rows


def _profiles() -> list[Row]:
    rows: list[Row] = []
    for profile, description in (("restarts", "a restart every 1000"), ("events", "a custom event every 100")):
        ours, peer = _compare("queries", profile, OF_OTHERS)
        for figure, measure_name in (("cold_s", "first query"), ("new_s", "query after a new entry")):
            cells = (_seconds(each[figure]) for each in (ours, peer))
            rows.append((f"{OF_OTHERS:,} steps, {description}: {measure_name}", *cells, "", ""))
    return rows


def _others() -> list[Row]:
    ours, peer = _compare("others", "maxtext", OF_OTHERS)
    rows: list[Row] = []
    for figure, measure_name in (("deviation", "step deviation"), ("windows", "rolling windows")):
        for state, when in (("cold_s", "first"), ("new_s", "after a new entry")):
            cells = (_seconds(each[f"{figure}.{state}"]) for each in (ours, peer))
            rows.append((f"{OF_OTHERS:,} steps: {measure_name}, {when}", *cells, "", ""))
    return rows


def _largest() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        figures = _own("queries", "maxtext", LARGEST, Path(folder))
    return [
        (f"{LARGEST:,} steps: first query", _seconds(figures["cold_s"]), "", "", "linear"),
        (f"{LARGEST:,} steps: query after a new entry", _seconds(figures["new_s"]), "", "", "flat"),
        (f"{LARGEST:,} steps: memory, MiB", _memory(figures), "", "", "≤ 1000"),
    ]


def _steps() -> list[Row]:
    print("... steps with and without a monitor (about two minutes)", flush=True)
    figures = slow_down("bench/goodput_steps.py")
    return [
        (
            "1 ms step, recorded and monitored: slow-down, 95 % bound",
            f"{figures['bound_percent']:+.1f} %",
            "",
            "",
            "≤ 2 %",
        ),
        ("1 ms step: p99.9 of the step, added", f"{figures['added_ms']:+.2f} ms", "", "", "≤ 5 ms"),
    ]


def _compare(measure_name: str, profile: str, steps: int) -> tuple[Figures, Figures]:
    """Return the figures of both; raise `RuntimeError` if their goodput differs."""
    print(f"... {measure_name} of {steps} steps, {profile}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ours = _own(measure_name, profile, steps, Path(folder), from_snapshot=steps == SIZES[-1])
    peer = _client("peer", measure_name, profile, str(steps))
    if abs(ours.get("goodput", 0) - peer.get("goodput", 0)) > 1:
        raise RuntimeError(f"{steps} steps, {profile}: goodput is {ours['goodput']} % and {peer['goodput']} %")
    return ours, peer


def _own(measure_name: str, profile: str, steps: int, folder: Path, *, from_snapshot: bool = False) -> Figures:
    """Return the figures of mldiagnostics; `from_snapshot` adds those of a second process."""
    _run([sys.executable, "bench/goodput_logs.py", profile, str(steps), str(folder)])
    command = [
        sys.executable,
        "bench/goodput_clients.py",
        "mldiagnostics",
        measure_name,
        profile,
        str(steps),
        str(folder),
    ]
    figures = _json(command)
    return figures | {f"kept.{name}": figure for name, figure in _json(command).items()} if from_snapshot else figures


def _client(name: str, measure_name: str, *rest: str) -> Figures:
    with tempfile.TemporaryDirectory() as folder:
        return _json([_python(name), "bench/goodput_clients.py", name, measure_name, *rest, folder])


def _python(name: str) -> str:
    return str(interpreter(PEER)) if name.startswith("peer") else sys.executable


def _json(command: Sequence[str]) -> Figures:
    measured: Figures = json.loads(_run(command).splitlines()[-1])
    return measured


def _run(command: Sequence[str]) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    return done.stdout


def _median(rounds: Sequence[Figures]) -> Figures:
    return {figure: statistics.median(each[figure] for each in rounds) for figure in rounds[0]}


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 0.1 else f"{seconds:.2f} s"


def _memory(figures: Figures) -> str:
    return f"{figures['peak_mib']:.0f} ({figures['own_mib']:.0f})"
