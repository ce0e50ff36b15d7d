"""Cost of reading runs: curves at first and after growth, beside a floor."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from bench.table import Section

ROOT = Path(__file__).parents[1]
POINTS = 1_000_000
RUNS = 1000
GROWTH = 300
REPEATS = 5

WRITE = """
import sys
from mldiagnostics import machinelearning_run, metrics
with machinelearning_run("bench", storage=sys.argv[1], run_workload_id="run", log_system_metrics=False,
                         on_full="wait") as run:
    for step in range(int(sys.argv[2])):
        metrics.record("loss", 1 / (step + 1) + step % 7 * 1e-3, step=step)
"""
READ = """
import json, pathlib, re, sys, time
def peak_mib():
    return int(re.search(r"VmHWM:\\s+([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.runs import SeriesReader
directory, points, growth = sys.argv[1], int(sys.argv[2]) or None, int(sys.argv[3])
before = peak_mib()
start = time.perf_counter()
reader = SeriesReader(directory, "loss", points=points)
[curve] = reader.read()
first_s = time.perf_counter() - start
rss_mib = peak_mib() - before
file = sorted(pathlib.Path(directory, "records").iterdir())[-1]
grown = []
for turn in range(5):
    with file.open("a") as opened:
        for step in range(growth):
            opened.write(encode(Record("metric", 1e9 + step, "loss", 0.5, step, unit="1")))
    start = time.perf_counter()
    [after] = reader.read()
    grown.append(time.perf_counter() - start)
assert after.count == curve.count + 5 * growth
start = time.perf_counter()
reader.read()
idle_s = time.perf_counter() - start
print(json.dumps({"first_s": first_s, "rss_mib": rss_mib, "grown_ms": sorted(grown)[2] * 1e3,
                  "idle_ms": idle_s * 1e3, "points": curve.count}))
"""
FLOOR = """
import json, pathlib, re, sys, time
def peak_mib():
    return int(re.search(r"VmHWM:\\s+([0-9]+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
before = peak_mib()
start, values = time.perf_counter(), []
for file in sorted(pathlib.Path(sys.argv[1], "records").iterdir()):
    with file.open("rb") as lines:
        for line in lines:
            record = json.loads(line)
            if record["kind"] == "metric" and record["name"] == "loss":
                values.append((record["t"], record.get("step"), record["value"]))
first_s = time.perf_counter() - start
rss_mib = peak_mib() - before
print(json.dumps({"first_s": first_s, "rss_mib": rss_mib, "points": len(values)}))
"""
LIST = """
import json, sys, time
from mldiagnostics.runs import find_run, list_runs
start = time.perf_counter()
rows = list_runs(sys.argv[1])
listed_s = time.perf_counter() - start
start = time.perf_counter()
find_run(sys.argv[2], "run")
found_ms = (time.perf_counter() - start) * 1e3
print(json.dumps({"listed_s": listed_s, "runs": len(rows), "found_ms": found_ms}))
"""

Figures = dict[str, float]


def measure() -> Section:
    """Write one run of a million points and many small ones, and read them a few times."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        print(f"... a run of {POINTS:,} points (about half a minute)", flush=True)
        large, many = Path(folder, "large"), Path(folder, "many")
        _run(WRITE, str(large), str(POINTS))
        run = large / "run"
        size_mib = sum(file.stat().st_size for file in run.rglob("*.jsonl")) / 2**20
        document = (run / "run.json").read_bytes()
        for number in range(RUNS):
            (many / f"run-{number}").mkdir(parents=True)
            (many / f"run-{number}/run.json").write_bytes(document)
        rounds: dict[str, list[Figures]] = {"floor": [], "sampled": [], "all": [], "list": []}
        for number in range(REPEATS):
            print(f"... round {number + 1} of {REPEATS} (about 15 s)", flush=True)
            rounds["floor"].append(_run(FLOOR, str(run)))
            rounds["sampled"].append(_run(READ, str(run), "1000", str(GROWTH)))
            rounds["all"].append(_run(READ, str(run), "0", str(GROWTH)))
            rounds["list"].append(_run(LIST, str(many), str(large)))
    floor, sampled, everything, listing = (_best(rounds[name]) for name in ("floor", "sampled", "all", "list"))
    return Section(
        name="runs",
        title=f"Reading a run of {POINTS:,} points",
        columns=("figure", "series, points=1000", "series, all points", "floor: json.loads of each line", "goal"),
        rows=[
            (
                "first series, s",
                *(f"{each['first_s']:.2f}" for each in (sampled, everything, floor)),
                "≤ 2 s and ≤ 1/2 of the floor",
            ),
            (
                f"after growth of {GROWTH} lines, ms",
                *(f"{each['grown_ms']:.1f}" for each in (sampled, everything)),
                "",
                "≤ 50 ms",
            ),
            ("without growth, ms", *(f"{each['idle_ms']:.1f}" for each in (sampled, everything)), "", ""),
            (
                "memory added, MiB",
                *(f"{each['rss_mib']:.1f}" for each in (sampled, everything, floor)),
                "≤ 16 MiB",
            ),
            (f"list_runs, {RUNS} runs, s", f"{listing['listed_s']:.2f}", "", "", ""),
            ("find_run, ms", f"{listing['found_ms']:.1f}", "", "", ""),
        ],
        notes=(
            f"Best of {REPEATS} rounds in turns, each in a process of its own, on {os.cpu_count()} cores "
            f"({platform.machine()}, load average {load:.1f} at the start: other work slows all columns alike). The "
            f"run is written by the SDK, {size_mib:.0f} MiB in files of 64 MiB, and lies in the page cache. Goals are "
            "for points=1000; with all points each call returns all of them. Memory is the growth of the peak of "
            "resident memory."
        ),
    )


def _best(rounds: list[Figures]) -> Figures:
    return {figure: min(each[figure] for each in rounds) for figure in rounds[0]}


def _run(program: str, *arguments: str) -> Figures:
    command = [sys.executable, "-c", textwrap.dedent(program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode:
        raise RuntimeError(f"{command[3:]} failed:\n{done.stderr[-2000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {}
    return figures
