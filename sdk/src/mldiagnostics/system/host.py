"""CPU and memory of the host: of the container where it is bounded, else of the machine."""

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
    """Reads /proc and the control groups; the label `scope` says what a percentage is of."""

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
        self._before = self._moment()

    def read(self) -> list[SystemSample]:
        """Return CPU time since the last reading and memory now, each as a part of what there is; in percent."""
        return [*self._cpu(), *self._memory()]

    def _cpu(self) -> list[SystemSample]:
        before, now = self._before, self._moment()
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
        bound, used = self._groups.memory_bound_bytes(), self._groups.memory_bytes()
        if bound and used is not None and (not whole or bound < whole):
            return [_percent(MetricType.HOST_MEMORY_UTILIZATION, used / bound, _CONTAINER)]
        if whole and "MemAvailable" in machine:
            share = 1 - machine["MemAvailable"] / whole
            return [_percent(MetricType.HOST_MEMORY_UTILIZATION, share, _MACHINE)]
        return []

    def _moment(self) -> _CpuTimes | None:
        """Read the counters; None where there is no /proc, as on a Mac. First line of /proc/stat: proc_stat(5)."""
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
        """Return the amounts of /proc/meminfo in bytes."""
        found = {}
        try:
            for line in (self._proc / "meminfo").read_text().splitlines():
                name, _, amount = line.partition(":")
                words = amount.split()
                if len(words) == 2 and words[1] == "kB":
                    found[name] = int(words[0]) * 1024
        except (OSError, ValueError):
            return {}
        return found


def _percent(metric: MetricType, share: float, labels: dict[str, str]) -> SystemSample:
    return SystemSample(metric, max(0.0, 100 * share), labels)
