"""The cost of reporting to a control plane for a training process: the same program without and with one."""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from support.servers.report_servers import report_server

from bench.table import Section

ROUNDS = 5
PROGRAM = """
import json, os, sys, time
def rss_mib():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 / 2**20
def timed(step):
    start = time.perf_counter_ns()
    metrics.record("loss", 0.5, step=step)
    return (time.perf_counter_ns() - start) / 1e3
def quantile(values, share):
    return sorted(values)[int(len(values) * share)]
before, cpu = rss_mib(), time.process_time()
from mldiagnostics import machinelearning_run, metrics
import_ms, import_mib = (time.process_time() - cpu) * 1e3, rss_mib() - before
run = machinelearning_run("bench", storage=sys.argv[1], log_system_metrics=False)
time.sleep(2)
paced = []
for step in range(600):
    run.step(step)
    paced.append(timed(step))
    time.sleep(0.005)
run_mib, cpu = rss_mib() - before, time.process_time()
burst = [timed(step) for step in range(100_000)]
run.close()
burst_us = (time.process_time() - cpu) / len(burst) * 1e6
quantiles = [quantile(paced, 0.5), quantile(paced, 0.99), quantile(burst, 0.5)]
print(json.dumps([import_ms, import_mib, run_mib, *quantiles, burst_us]))
"""
FIGURES = (
    ("import, ms of processor time", "{:.0f}", "unchanged"),
    ("import, MiB", "{:.1f}", "unchanged"),
    ("with a run, MiB", "{:.1f}", "≤ 16"),
    ("record, paced, p50, µs", "{:.1f}", "unchanged"),
    ("record, paced, p99, µs", "{:.1f}", "unchanged"),
    ("record, burst, p50, µs", "{:.2f}", "unchanged"),
    ("CPU of the process for each metric of the burst and its end, µs", "{:.1f}", "unchanged"),
)


def measure() -> Section:
    """Run the program several times without and with a control plane, in turns."""
    load = os.getloadavg()[0]
    rounds: dict[bool, list[list[float]]] = {False: [], True: []}
    with tempfile.TemporaryDirectory() as folder, report_server(Path(folder)) as server:
        for _ in range(ROUNDS):
            for reports, figures in rounds.items():
                figures.append(_figures(os.environ | (server.variables if reports else {})))
        reports_sent = len(server.reports)
    off, on = ([statistics.median(column) for column in zip(*figures, strict=True)] for figures in rounds.values())
    rows = [
        (title, form.format(without), form.format(with_one), goal)
        for (title, form, goal), without, with_one in zip(FIGURES, off, on, strict=True)
    ]
    return Section(
        "reporting",
        "Reporting to a control plane from a training process",
        ("figure", "without", "with a control plane", "goal"),
        rows,
        f"Medians of {ROUNDS} rounds in turns, each in a process of its own, on {os.cpu_count()} cores "
        f"({platform.machine()}, load average {load:.1f} at the start): 600 steps with a metric at 200 a second, then "
        f"100 000 metrics without a pause, then the end of the run. The control plane is an HTTPS server that asks for "
        f"a report every second, ten times as often as the operator; it got {reports_sent} reports. "
        "4.7 MiB of the memory are OpenSSL and Python's module for it, which only a process that reports loads.",
    )


def _figures(environment: dict[str, str]) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise RuntimeError(f"the program failed:\n{done.stderr[-2000:]}")
    figures: list[float] = json.loads(done.stdout.splitlines()[-1])
    return figures
