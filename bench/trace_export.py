"""Cost of a trace out of a log, beside mltrace and a floor."""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.table import Section

MLDIAG = Path(sys.executable).parent / "mldiag"
PEER_VARIABLE = "MLTRACE_PYTHON"
"""Environment variable: a Python with cloud-diagnostics-xprof 0.1.1, pandas, perfetto and google-cloud-logging."""

SIZE_VARIABLE = "TRACE_MIB"
"""Environment variable: size of the large log, for machines without the time for a gigabyte."""

LARGE_MIB = 1024
SMALL_MIB = 8
"""The peer holds the whole log in memory, at about 20 times its size."""

FLOOR = """
import json, sys
with open(sys.argv[1], "rb") as log:
    for line in log:
        json.loads(line)
"""
PEER = "from mltrace.main import main; main()"


@dataclass(frozen=True)
class Cost:
    """Processor seconds and peak memory of one process."""

    cpu_s: float
    peak_mib: float

    def shown(self) -> str:
        return f"{self.cpu_s:.1f} s, {self.peak_mib:.0f} MiB"


def measure() -> Section:
    """Write an export of Cloud Logging, and make traces of it."""
    load = os.getloadavg()[0]
    peer = os.environ.get(PEER_VARIABLE)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = []
        for size in (SMALL_MIB, int(os.environ.get(SIZE_VARIABLE, LARGE_MIB))):
            print(f"... a log of {size} MiB", flush=True)
            log = folder / f"log-{size}.jsonl"
            _write(log, size)
            ours = _run([str(MLDIAG), "trace", str(log)], folder)
            floor = _run([sys.executable, "-c", FLOOR, str(log)], folder)
            theirs, faster = "", ""
            if peer and size == SMALL_MIB:
                cost = _run([peer, "-c", PEER, "-f", str(log), "-j", "trainer", "-p", "project"], folder)
                theirs, faster = cost.shown(), f"{cost.cpu_s / ours.cpu_s:.1f}"
            rows.append((f"{size} MiB", ours.shown(), floor.shown(), theirs, faster, "≤ 200 MiB, faster than mltrace"))
            log.unlink()
    return Section(
        name="trace",
        title="A trace for Perfetto out of a log",
        columns=("log", "mldiag trace", "floor: json.loads of each line", "mltrace", "mltrace / mldiag trace", "goal"),
        rows=rows,
        notes=(
            f"Processor time and peak of resident memory of one process each, on {os.cpu_count()} cores "
            f"({platform.machine()}, load average {load:.1f} at the start). The log is an export of Cloud Logging with "
            f"600 bytes an entry, of 32 pods. mltrace is run on the small log only, as it holds all of it in memory; "
            f"`{PEER_VARIABLE}` names the Python that has it, `{SIZE_VARIABLE}` another size of the large log."
        ),
    )


def _write(log: Path, size_mib: int) -> None:
    with log.open("w") as file:
        number = 0
        while file.tell() < size_mib * 2**20:
            for _ in range(1000):
                file.write(json.dumps(_entry(number)) + "\n")
                number += 1


def _entry(number: int) -> dict[str, object]:
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(1_795_255_200 + number // 100))
    stamp = f"{moment}.{number % 1_000_000:06}123Z"
    message = f"step {number} loss={1 / (number + 1):.6f}, message {number % 977} of the training loop"
    labels = {"cluster_name": "c", "container_name": "main", "location": "us", "project_id": "p"}
    return {
        "insertId": f"{number:024x}",
        "jsonPayload": {"message": message},
        "textPayload": "",
        "timestamp": stamp,
        "receiveTimestamp": stamp,
        "severity": "INFO",
        "sourceLocation": {"file": f"src/train/file{number % 7}.py", "line": str(number % 400)},
        "resource": {
            "type": "k8s_container",
            "labels": {**labels, "pod_name": f"trainer-slice-{number % 2}-{number % 32}-abcde"},
        },
    }


def _run(command: list[str], folder: Path) -> Cost:
    """Run a process, and return its cost: its own, as each has a parent of its own."""
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr
        errors = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[:2]} failed:\n{errors[-2000:].decode(errors='replace')}")
    return Cost(usage.ru_utime + usage.ru_stime, _mib(usage))


def _mib(usage: resource.struct_rusage) -> float:
    """Return the peak of resident memory, which macOS has in bytes and Linux in KiB."""
    return usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
