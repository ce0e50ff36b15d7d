"""Memory and CPU time of a process, from `/proc`."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path


class CpuUse:
    """CPU time of some processes from now on.

    Args:
        pids: The processes, by name.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = pids
        self._begin_s = time.monotonic()
        self._spent_s = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def cores(self) -> dict[str, float]:
        """Return the cores that each process has used on average."""
        passed_s = time.monotonic() - self._begin_s
        return {name: (cpu_seconds(pid) - self._spent_s[name]) / passed_s for name, pid in self._pids.items()}


def rss_mb(pid: int) -> float:
    """Return the resident memory of a process, in MB."""
    return _status_kib(pid, "VmRSS") * 1024 / 1e6


def peak_rss_mib(pid: int) -> float:
    """Return the largest resident memory of a process so far, in MiB."""
    return _status_kib(pid, "VmHWM") / 1024


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of the threads that a process has."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


async def settled_rss_mb(pid: int, *, pause_s: float) -> float:
    """Return the resident memory once it grows by less than 1 MB in `pause_s`."""
    before = rss_mb(pid)
    while True:
        await asyncio.sleep(pause_s)
        now = rss_mb(pid)
        if now - before < 1:
            return now
        before = now


def _status_kib(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1])
    raise RuntimeError(f"/proc/{pid}/status: no line {field}; the process has ended")
