"""The cost of recording for a training process, compared with other recorders and a floor.

The clients are in `bench.sdk_clients`.
"""

import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.programs.environments import interpreter

from bench.table import Section

ROOT = Path(__file__).parents[1]
REPEATS = 5
KILLS = 8
RUN_LENGTH_S = (1.0, 3.0)

IMPORT = """
import json, sys, time
def rss_mib():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
before, modules, start = rss_mib(), set(sys.modules), time.perf_counter()
{statement}
wall_ms, imported = (time.perf_counter() - start) * 1e3, rss_mib() - before
{run}
foreign = {{name.partition(".")[0] for name in set(sys.modules) - modules}} - sys.stdlib_module_names - {{{own!r}}}
foreign = {{name for name in foreign if not name.startswith("_")}}
print(json.dumps({{"wall_ms": wall_ms, "rss_mib": imported, "run_mib": rss_mib() - before, "foreign": len(foreign)}}))
"""
OWN_RUN = """
import tempfile
folder = tempfile.TemporaryDirectory()
run = machinelearning_run("bench", storage=folder.name)
for step in range(1000):
    metrics.record("loss", 0.5, step=step)
time.sleep(2)
"""


@dataclass(frozen=True)
class Client:
    """One recorder: its column, its name in `sdk_clients`, its environment and its import statement."""

    label: str
    name: str
    environment: str | None
    statement: str
    own: str
    run: str = ""

    @property
    def python(self) -> str:
        return str(interpreter(self.environment)) if self.environment else sys.executable


NAMES = "machinelearning_run, metrics, xprof, metric_types"
CLIENTS = (
    Client("mldiagnostics", "mldiagnostics", None, f"from mldiagnostics import {NAMES}", "mldiagnostics", OWN_RUN),
    Client(
        "google-cloud-mldiagnostics 1.0.10",
        "google",
        "peer-sdk",
        f"from google_cloud_mldiagnostics import {NAMES}",
        "google_cloud_mldiagnostics",
    ),
    Client("tensorboardX", "tensorboardX", "loggers", "import tensorboardX", "tensorboardX"),
    Client("trackio", "trackio", "loggers", "import trackio", "trackio"),
    Client("floor: does nothing", "floor", None, "", ""),
)

Figures = dict[str, float]


def measure() -> Section:
    """Run every client several times, in turns, and return the medians."""
    load = os.getloadavg()[0]
    figures: dict[str, list[Figures]] = {client.name: [] for client in CLIENTS}
    for number in range(REPEATS):
        print(f"... all clients, round {number + 1} of {REPEATS} (about a minute)", flush=True)
        for client in CLIENTS:
            figures[client.name].append(_figures(client))
    medians = {name: _median(rounds) for name, rounds in figures.items()}
    print(f"... {KILLS} kills (about {KILLS * 3} s)", flush=True)
    lost_s = max(_lost_by_kill_s() for _ in range(KILLS))
    print("... steps with and without a run (about a minute)", flush=True)
    slowdown = slow_down("bench/sdk_steps.py")
    rows = [_row(medians, *line) for line in LINES]
    rows.append(("lost by kill -9, maximum of several", f"{lost_s:.2f} s", *("",) * 4, "≤ 1 s"))
    rows.append(
        ("1 ms step, 5 metrics: slow-down, 95 % bound", f"{slowdown['bound_percent']:+.1f} %", *("",) * 4, "≤ 2 %")
    )
    rows.append(("1 ms step: p99.9 of the step, added", f"{slowdown['added_ms']:+.2f} ms", *("",) * 4, "≤ 5 ms"))
    return Section(
        name="sdk",
        title="Recording metrics in a training process",
        columns=("figure", *(client.label for client in CLIENTS), "goal"),
        rows=rows,
        notes=(
            f"Medians of {REPEATS} rounds, each client in its own process, in turns, on {os.cpu_count()} cores "
            f"({platform.machine()}, load average {load:.1f} at the start). Paced: 200 calls a second; burst: "
            "100 000 calls without a pause (10 000 for trackio), CPU time of the whole process until all is "
            "delivered. mldiagnostics writes its records to files. Google's client has an exporter that does nothing, "
            "and the bench waits for its queue, which the client does not. tensorboardX blocks its caller when its "
            "queue is full. Steps: blocks with a complete run (system metrics, heartbeat, port for captures) and "
            "without a run, in alternating pairs."
        ),
    )


LINES: tuple[tuple[str, str, Callable[[float], str], str], ...] = (
    ("record, paced, p50, µs", "paced.p50_us", "{:.1f}".format, "floor + 2"),
    ("record, paced, p99, µs", "paced.p99_us", "{:.1f}".format, "floor + 10"),
    ("record, burst, p50, µs", "burst.p50_us", "{:.2f}".format, "≤ 0.5"),
    ("CPU of the process for each metric, µs", "burst.cpu_us", "{:.1f}".format, "≤ 6"),
    ("lost of the burst", "burst.lost", "{:.0f}".format, "0"),
    ("import, ms", "import.wall_ms", "{:.0f}".format, "≤ 35"),
    ("import, MiB", "import.rss_mib", "{:.1f}".format, "≤ 8"),
    ("with a run, MiB", "import.run_mib", "{:.1f}".format, "≤ 16"),
    ("third-party packages loaded", "import.foreign", "{:.0f}".format, "0"),
)


def _row(
    medians: dict[str, Figures], mode: str, figure: str, format_cell: Callable[[float], str], goal: str
) -> tuple[str, ...]:
    cells = (medians[client.name].get(figure, math.nan) for client in CLIENTS)
    return (mode, *("" if math.isnan(cell) else format_cell(cell) for cell in cells), goal)


def _median(rounds: list[Figures]) -> Figures:
    return {figure: statistics.median(each[figure] for each in rounds) for figure in rounds[0]}


def _figures(client: Client) -> Figures:
    figures: Figures = {}
    for mode in ("paced", "burst"):
        with tempfile.TemporaryDirectory() as folder:
            measured = _json([client.python, "bench/sdk_clients.py", client.name, mode, folder])
        figures |= {f"{mode}.{name}": value for name, value in measured.items()}
    if client.statement:
        program = IMPORT.format(statement=client.statement, run=client.run, own=client.own)
        figures |= {f"import.{name}": value for name, value in _json([client.python, "-c", program]).items()}
        if not client.run:
            del figures["import.run_mib"]
    return figures


def _json(command: list[str]) -> Figures:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{command} failed:\n{done.stderr[-2000:]}")
    measured: Figures = json.loads(done.stdout.splitlines()[-1])
    return measured


def _lost_by_kill_s() -> float:
    """Kill a process that records 200 times a second; return the seconds of lost records."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "bench/sdk_clients.py", "mldiagnostics", "endless", folder]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout
        time.sleep(random.uniform(*RUN_LENGTH_S))
        process.kill()
        recorded = [int(line) for line in process.stdout.read().split()]
        process.wait()
        lines = [json.loads(line) for file in Path(folder).rglob("*.jsonl") for line in file.read_text().splitlines()]
    written = sum(line["kind"] == "metric" for line in lines)
    return float(max(0, len(recorded) - written) * 0.005)


def slow_down(program: str, variables: Mapping[str, str] | None = None) -> dict[str, float]:
    """Return the slow-down, its upper 95 % bound, and the added time of the slowest steps."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'e2e'}", **(variables or {})}
    command = [sys.executable, program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT, env=environment)
    pairs = json.loads(done.stdout.splitlines()[-1])
    log_ratios = [math.log(statistics.fmean(on) / statistics.fmean(off)) for on, off in pairs]
    resampled = sorted(statistics.median(random.choices(log_ratios, k=len(log_ratios))) for _ in range(10_000))
    on, off = (sorted(step for pair in pairs for step in pair[side]) for side in (0, 1))
    position = int(len(on) * 0.999)
    return {
        "median_percent": math.expm1(statistics.median(log_ratios)) * 100,
        "bound_percent": math.expm1(resampled[int(len(resampled) * 0.95)]) * 100,
        "added_ms": (on[position] - off[position]) * 1e3,
    }
