"""One capture of 1000 hosts: time, start skew and memory, compared with peers and a floor."""

import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import grpc
from mldiagnostics.capture.messages import SERVICE

from bench.table import Section

HOSTS = 1000
DURATION_MS = 1000
SAMPLE = 5
REPEATS = 5
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Run:
    """Figures of one capture."""

    over_s: float
    skew_p99_ms: float
    peak_rss_mib: float
    answered: int


@dataclass(frozen=True)
class Contest:
    """One client, and servers that return `trace_bytes`; the goal is that of mldiagnostics."""

    client: str
    label: str
    trace_bytes: int | None
    goal: str = ""


CONTESTS = (
    Contest("mldiagnostics", "mldiagnostics, empty answers", None, "≤ 0.3 s, ≤ 10 ms"),
    Contest("floor", "floor: bare grpc.aio, empty answers", None),
    Contest("xprof", "XProf's C++ client, empty answers", None),
    Contest("mldiagnostics", "mldiagnostics, smallest traces, stored", 0),
    Contest("mldiagnostics", "mldiagnostics, 2 MiB each, stored", 2 * MEBIBYTE, "≤ 5 s, ≤ 300 MiB"),
    Contest("floor", "floor: bare grpc.aio, 2 MiB each, dropped", 2 * MEBIBYTE),
)


def measure() -> Section:
    """Run every contest several times and return the medians."""
    load = os.getloadavg()[0]
    rows = []
    for contest in CONTESTS:
        print(f"... {contest.label} ({REPEATS} x about {6 if contest.trace_bytes else 4} s)", flush=True)
        with fleet(contest.trace_bytes) as port:
            runs = [_run(contest.client, port, HOSTS) for _ in range(REPEATS)]
        rows.append(_row(contest, runs))
    print(f"... one host after another ({SAMPLE} s, then scaled)", flush=True)
    with fleet(None) as port:
        sequential = _run("one_by_one", port, SAMPLE)
    each_s = sequential.over_s / SAMPLE + DURATION_MS / 1000
    rows.append(
        (
            "XProf's client, one host after another (xprofiler's way)",
            f"{each_s * HOSTS - DURATION_MS / 1000:.0f}",
            "",
            "",
            "",
        )
    )
    return Section(
        name="capture",
        title=f"{HOSTS} hosts, one capture of {DURATION_MS / 1000:g} s",
        columns=("client", "time over duration + lead, s", "start skew p99, ms", "peak memory, MiB", "goal"),
        rows=rows,
        notes=(
            f"Median (lowest-highest) of {REPEATS}. The client and the one process with all servers share "
            f"{os.cpu_count()} cores ({platform.machine()}, load average {load:.1f} at the start: other work slows all "
            "rows alike). Lead: 2 s; XProf's client always uses 3 s. Start skew is measured in the servers, which "
            "contribute to it. mldiagnostics probes every server first, and checks, hashes and stores every trace (in "
            "a file system in memory). The floor does none of this and drops the responses."
        ),
    )


def _row(contest: Contest, runs: list[Run]) -> tuple[str, ...]:
    assert all(run.answered == HOSTS for run in runs), f"{contest.label}: not every host answered"
    return (
        contest.label,
        _spread([run.over_s for run in runs], 2),
        _spread([run.skew_p99_ms for run in runs], 1),
        _spread([run.peak_rss_mib for run in runs], 0),
        contest.goal,
    )


def _spread(values: list[float], digits: int) -> str:
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def _run(client: str, port: int, hosts: int) -> Run:
    command = [sys.executable, "-m", "bench.capture_clients", client, str(port), str(hosts), str(DURATION_MS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{client} failed:\n{done.stderr[-2000:]}")
    measured = json.loads(done.stdout)
    starts_ns = _starts(port)
    late_ms = [(start_ns - min(starts_ns)) / 1e6 for start_ns in starts_ns]
    return Run(
        over_s=measured["wall_s"] - measured["lead_s"] - DURATION_MS / 1000,
        skew_p99_ms=statistics.quantiles(late_ms, n=100)[98],
        peak_rss_mib=measured["peak_rss_mib"],
        answered=measured["answered"],
    )


def _starts(port: int) -> list[int]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        method: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(f"/{SERVICE}/GetStarts")
        starts: list[int] = json.loads(method(b""))
    return starts


@contextmanager
def fleet(trace_bytes: int | None) -> Iterator[int]:
    """Run servers that return so many bytes while the block runs; yield their port."""
    command = [sys.executable, "-m", "bench.profiler_fleet"]
    command += [] if trace_bytes is None else [str(trace_bytes)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout
            yield int(process.stdout.readline())
        finally:
            process.kill()
