"""The costs of the calls of a training loop, each beside its floor in the same process: `python -m bench hot-path`."""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.table import Section

ROOT = Path(__file__).parents[1]
KILLS = 5
RUN_LENGTH_S = (1.0, 4.0)
PROGRAM = "bench/sdk_hot_path_programs.py"


def measure() -> Section:
    """Run each program and return its medians."""
    load = os.getloadavg()[0]
    print("... steps and metrics in turns (half a minute)", flush=True)
    plain, traced = _json("steps"), _json("steps-jax")
    print("... points with on_full='wait' and json.dumps in turns (half a minute)", flush=True)
    points = _json("points")
    print(f"... {KILLS} kills (about {KILLS * 4} s)", flush=True)
    lost = [_lost_s() for _ in range(KILLS)]
    rows = [
        _beside("run.step over metrics.record, µs", plain["step"], plain["record"], "≤ 1"),
        _beside("the same with JAX imported, µs", traced["step"], traced["record"], ""),
        (
            "a point with on_full='wait' over json.dumps, CPU of the process, µs",
            f"{points['ours']:.2f}",
            f"{points['dumps']:.2f}",
            f"ratio {points['ratio']:.2f}",
            "ratio ≤ 1.0",
        ),
        ("kill -9 in a tight loop, s lost, maximum", f"{max(lost):.2f}", "", "", "≤ 1"),
    ]
    return Section(
        name="hot-path",
        title="The calls of a training loop beside their floors",
        columns=("figure", "measured", "floor", "difference", "goal"),
        rows=rows,
        notes=(
            f"On {os.cpu_count()} cores (load average {load:.1f} at the start). Calls and floor take turns in one "
            "process; medians of blocks, of the time of the thread for calls and of the processor time of the process "
            "for points. json.dumps encodes dicts with the keys and values of the written lines, and writes nothing. "
            f"Lost: age of the last written metric when the process is killed after {RUN_LENGTH_S[0]:g} to "
            f"{RUN_LENGTH_S[1]:g} s."
        ),
    )


def _beside(figure: str, measured: float, floor: float, goal: str) -> tuple[str, ...]:
    return (figure, f"{measured:.2f}", f"{floor:.2f}", f"{measured - floor:+.2f}", goal)


def _json(what: str) -> dict[str, float]:
    command = [sys.executable, PROGRAM, what]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _lost_s() -> float:
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen([sys.executable, PROGRAM, "endless", folder], cwd=ROOT, stdout=subprocess.PIPE)
        assert process.stdout
        process.stdout.readline()
        time.sleep(random.uniform(*RUN_LENGTH_S))
        killed = time.time()
        process.kill()
        process.wait()
        lines = (line for file in Path(folder).rglob("*.jsonl") for line in file.read_text().splitlines())
        last = max(json.loads(line)["t"] for line in lines if '"kind":"metric"' in line)
    return float(killed - last)
