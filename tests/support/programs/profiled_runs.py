"""Processes of one run that report ports of profilers, as the SDK does once a framework's server listens."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.programs.processes import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RUN = "4f6c"
"""Id of the run; its name is `trainer`."""
_PROGRAM = """
import sys, threading, time
from mldiagnostics import machinelearning_run
port, pause_s = int(sys.argv[1]), float(sys.argv[2])
with machinelearning_run("trainer", run_workload_id="4f6c", storage="runs", sinks="jsonl:") as run:
    if port:
        report = {"port": port, "server": "jax", "version": "1"}
        run.recording.append("session", "on-demand", payload={"state": "listening", **report})
    run.recording.flush(60)
    print("ready", flush=True)
    reader = threading.Thread(target=sys.stdin.read)
    reader.start()
    while pause_s and reader.is_alive():
        run.step()
        time.sleep(pause_s)
    reader.join()
"""


@contextmanager
def profiled_run(folder: Path, *ports: int, step_s: tuple[float, ...] = ()) -> Iterator[list[subprocess.Popen[str]]]:
    """Run a process of one run for each port while the block runs.

    Args:
        folder: Directory with the root of the runs, `runs`.
        ports: One for each process; with port 0 it has no profiler.
        step_s: Time of a step of each process; without it they make none.
    """
    times = step_s or (0.0,) * len(ports)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(port), str(time_s)],
            cwd=folder,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(ports))},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank, (port, time_s) in enumerate(zip(ports, times, strict=True))
    ]
    try:
        for process in running:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
        eventually((folder / "runs" / RUN / "run.json").exists)
        yield running
    finally:
        end(running)


def end(processes: list[subprocess.Popen[str]]) -> None:
    """Let the processes end, and wait for them."""
    for process in processes:
        if process.stdin and not process.stdin.closed:
            process.communicate()
