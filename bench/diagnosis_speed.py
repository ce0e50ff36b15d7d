"""CPU time and memory of a diagnosis, beside XProf's overview of the same session.

The measured parts run as `python -m bench.diagnosis_speed verdict|overview FILE…`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from support.host_summaries import steady, synchronous_job
from support.traces import TracedEvent, xspace

from bench.table import Section

if TYPE_CHECKING:
    from collections.abc import Sequence

HOSTS = 16
TRACE_MIB, LARGE_MIB = 2, 250
SUMMARIES = 1000
STEPS, STEP_MS = 40, 50.0
EVENT_BYTES = 28
MIB = 2**20


@dataclass(frozen=True)
class Usage:
    """CPU time of a process and its children, and the largest memory of one of them."""

    cpu_s: float
    peak_mib: float
    output: str


def measure() -> Section:
    """Measure sessions of the sizes of the goals."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        print("... 16 hosts", flush=True)
        traces = _write_session(Path(folder, "small"), [trace(TRACE_MIB)] * HOSTS)
        session = _run("-m", "mldiagnostics_diagnosis", "session", str(Path(folder, "small")), "s")
        print("... XProf", flush=True)
        overview = _run("-m", "bench.diagnosis_speed", "overview", *map(str, traces))
        print("... a large trace", flush=True)
        [large] = _write_session(Path(folder, "large"), [trace(LARGE_MIB)])
        single = _run("-m", "mldiagnostics_diagnosis", "session", str(Path(folder, "large")), "s")
        large_mib = large.stat().st_size / MIB
        print("... 1000 summaries", flush=True)
        summaries = Path(folder, "summaries")
        summaries.write_bytes(
            b"\n".join(each.encode() for each in synchronous_job(steady(SUMMARIES, 64, {7: {"input": 0.02}})))
        )
        verdict = _run("-m", "bench.diagnosis_speed", "verdict", str(summaries))
    verdict_s = float(verdict.output)
    size = traces_mib = TRACE_MIB
    return Section(
        name="diagnosis",
        title="Diagnosis: CPU time and memory",
        columns=("work", "CPU, s", "peak memory of a process, MiB", "goal"),
        rows=(
            (f"{HOSTS} hosts x {size} MiB → verdict", f"{session.cpu_s:.1f}", f"{session.peak_mib:.0f}", "≤ 10 s"),
            (
                f"XProf's `overview_page` of these {HOSTS} x {traces_mib} MiB",
                f"{overview.cpu_s:.1f}",
                f"{overview.peak_mib:.0f}",
                "",
            ),
            (
                f"one trace of {large_mib:.0f} MiB → verdict",
                f"{single.cpu_s:.1f}",
                f"{single.peak_mib:.0f} ({single.peak_mib / large_mib:.1f} x the trace)",
                "≤ 60 s, ≤ 3 x the trace",
            ),
            (f"{SUMMARIES} summaries → verdict", f"{verdict_s:.2f}", f"{verdict.peak_mib:.0f}", "≤ 1 s, ≤ 200 MiB"),
        ),
        notes=(
            f"One run on {os.cpu_count()} cores, load average {load:.1f} at the start. The traces are written for the "
            f"bench: {STEPS} steps, one thread that trains and others with operations of {EVENT_BYTES} bytes. CPU time "
            "is that of the command with its reader processes; the last row counts the rules alone, its memory the "
            "parsed summaries too."
        ),
    )


def trace(mib: int) -> list[bytes]:
    """Return the parts of a trace of about this size; whole, it would count as memory of the measured process too."""
    return [_host(0), *[_worker()] * (mib - 1)]


def _host(rank: int) -> bytes:
    """Return the training thread and its collectives, about 1 MiB with further operations."""
    main, work = [], []
    for number in range(STEPS):
        t = number * STEP_MS
        main += [
            TracedEvent("train", t, STEP_MS - 0.5, {"step_num": number}),
            TracedEvent("load", t + 0.1, 5.0 + rank),
            TracedEvent("DevicePut", t + 5.0 + rank, 0.1),
            TracedEvent("PjitFunction(step)", t + 6.0 + rank, 0.2),
        ]
        stats: dict[str, int | str] = {"hlo_op": "all-reduce.1", "hlo_module": "jit_step", "run_id": number}
        work.append(TracedEvent("all-reduce.1", t + 30.0, 15.0, stats))
    return xspace({"/host:CPU": {"python": main, "tf_XLAEigen/1": [*work, *_operations(MIB // EVENT_BYTES)]}})


_WORKER: list[bytes] = []


def _worker() -> bytes:
    if not _WORKER:
        _WORKER.append(xspace({"/host:CPU": {"tf_XLAEigen/2": _operations(MIB // EVENT_BYTES)}}))
    return _WORKER[0]


def _operations(number: int) -> list[TracedEvent]:
    """Return operations that fill the 20 ms before the collective of each step."""
    in_step = number // STEPS
    return [
        TracedEvent(
            f"fusion.{index % 50}", step * STEP_MS + 8 + index * 20 / in_step, 15 / in_step, {"hlo_op": "fusion"}
        )
        for step in range(STEPS)
        for index in range(in_step)
    ]


def _write_session(folder: Path, traces: Sequence[Sequence[bytes]]) -> list[Path]:
    session = folder / "plugins/profile/s"
    session.mkdir(parents=True)
    paths = [session / f"host-{number}.xplane.pb" for number in range(len(traces))]
    for path, parts in zip(paths, traces, strict=True):
        with path.open("wb") as file:
            file.writelines(parts)
    return paths


def _run(*arguments: str) -> Usage:
    """Run Python to its end and return its use of resources."""
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"python {' '.join(arguments[:3])} ended with code {process.returncode}")
    return Usage(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, output)


def main(arguments: Sequence[str]) -> None:
    """Run one of the measured parts."""
    match arguments:
        case ["verdict", path]:
            from mldiagnostics_diagnosis.diagnosis import diagnose
            from mldiagnostics_diagnosis.summary import parse_summary

            summaries = [parse_summary(line, source=path) for line in Path(path).read_bytes().splitlines()]
            start = time.process_time()
            diagnose(summaries, session="s")
            print(time.process_time() - start)
        case ["overview", *files]:
            from support.programs.xprof_reader import xprof

            xprof("overview_page", files)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
