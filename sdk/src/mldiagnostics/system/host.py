"""CPU and memory of the container if it has limits, else of the machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.metric_types import MetricType
from mldiagnostics.system.cgroup import ControlGroups
from mldiagnostics.system.source import SystemSample

if TYPE_CHECKING:
    from collections.abc import Callable

_CONTAINER = {"scope": "container"}
_MACHINE = {"scope": "machine"}


class _CpuTimes(NamedTuple):
    at_s: float
    container_s: float | None
    machine_busy: int
    machine_all: int


class HostMetrics:
    """Reads /proc and control groups; label `scope` is `container` or `machine`."""

    name = "host"

    def __init__(
        self,
        *,
        groups: ControlGroups | None = None,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._groups = groups or ControlGroups()
        self._proc = proc
        self._clock = clock
        self._before: _CpuTimes | None = None
        self._before = self._cpu_times()

    def read(self) -> list[SystemSample]:
        """Return CPU use since the last reading and current memory use, in percent."""
        return [*self._cpu(), *self._memory()]

    def _cpu(self) -> list[SystemSample]:
        before, now = self._before, self._cpu_times()
        self._before = now
        if before is None or now is None or now.at_s <= before.at_s:
            return []
        cores = self._groups.cores()
        if cores and now.container_s is not None and before.container_s is not None:
            share = (now.container_s - before.container_s) / (now.at_s - before.at_s) / cores
            return [_percent(MetricType.HOST_CPU_UTILIZATION, share, _CONTAINER)]
        if now.machine_all > before.machine_all:
            share = (now.machine_busy - before.machine_busy) / (now.machine_all - before.machine_all)
            return [_percent(MetricType.HOST_CPU_UTILIZATION, share, _MACHINE)]
        return []

    def _memory(self) -> list[SystemSample]:
        machine = self._machine_memory()
        whole = machine.get("MemTotal", 0)
        limit, used = self._groups.memory_limit_bytes(), self._groups.memory_bytes()
        if limit and used is not None and (not whole or limit < whole):
            return [_percent(MetricType.HOST_MEMORY_UTILIZATION, used / limit, _CONTAINER)]
        if whole and "MemAvailable" in machine:
            share = 1 - machine["MemAvailable"] / whole
            return [_percent(MetricType.HOST_MEMORY_UTILIZATION, share, _MACHINE)]
        return []

    def _cpu_times(self) -> _CpuTimes | None:
        """Read the counters (proc_stat(5)); None without /proc, as on macOS."""
        try:
            words = (self._proc / "stat").read_text().split("\n", 1)[0].split()
            times = [int(word) for word in words[1:9]]  # guest time is part of user time
        except (OSError, ValueError):
            return None
        if len(times) < 5:
            return None
        whole = sum(times)
        return _CpuTimes(self._clock(), self._groups.cpu_s(), whole - times[3] - times[4], whole)

    def _machine_memory(self) -> dict[str, int]:
        """Return the values of /proc/meminfo in bytes."""
        amounts = {}
        try:
            for line in (self._proc / "meminfo").read_text().splitlines():
                name, _, amount = line.partition(":")
                words = amount.split()
                if len(words) == 2 and words[1] == "kB":
                    amounts[name] = int(words[0]) * 1024
        except (OSError, ValueError):
            return {}
        return amounts


def _percent(metric: MetricType, share: float, labels: dict[str, str]) -> SystemSample:
    return SystemSample(metric, max(0.0, 100 * share), labels)
