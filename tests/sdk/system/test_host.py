"""CPU and memory of the host, from test files in Linux's formats and from this machine."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.metric_types import MetricType
from mldiagnostics.system.cgroup import ControlGroups
from mldiagnostics.system.host import HostMetrics

CPU, MEMORY = MetricType.HOST_CPU_UTILIZATION, MetricType.HOST_MEMORY_UTILIZATION
MEMINFO = "MemTotal:        1000 kB\nMemFree:          100 kB\nMemAvailable:     250 kB\nHugePages_Total:       0\n"
MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


class Machine:
    """A machine whose files a test writes; `now_s` is its clock."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now_s = 0.0
        self.group = root / "sys/fs/cgroup"
        for folder in (root / "self", self.group):
            folder.mkdir(parents=True)
        (root / "self/mountinfo").write_text(MOUNTS)
        (root / "self/cgroup").write_text("0::/\n")
        (root / "meminfo").write_text(MEMINFO)

    def times(self, *, busy: int, idle: int) -> None:
        (self.root / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 2 3\n")

    def limited(self, *, cores: float, used_s: float, limit_bytes: int = 0, used_bytes: int = 0) -> None:
        (self.group / "cpu.max").write_text(f"{int(cores * 100_000)} 100000\n")
        (self.group / "cpu.stat").write_text(f"usage_usec {int(used_s * 1e6)}\n")
        if limit_bytes:
            (self.group / "memory.max").write_text(str(limit_bytes))
            (self.group / "memory.current").write_text(str(used_bytes))

    def host(self) -> HostMetrics:
        return HostMetrics(
            groups=ControlGroups(self.root, self.root / "self"), proc=self.root, clock=lambda: self.now_s
        )


def values(host: HostMetrics) -> dict[MetricType, tuple[float, str]]:
    return {reading.metric: (pytest.approx(reading.value), reading.labels["scope"]) for reading in host.read()}


def test_without_limits_the_machine_is_measured(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.times(busy=100, idle=900)
    host = machine.host()
    machine.now_s = 10
    machine.times(busy=130, idle=970)
    assert values(host) == {CPU: (30.0, "machine"), MEMORY: (75.0, "machine")}


def test_a_container_is_measured_against_its_limits(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.times(busy=0, idle=0)
    machine.limited(cores=4, used_s=100, limit_bytes=500_000, used_bytes=50_000)
    host = machine.host()
    machine.now_s = 10
    machine.times(busy=1000, idle=0)
    machine.limited(cores=4, used_s=110, limit_bytes=500_000, used_bytes=50_000)
    assert values(host) == {CPU: (25.0, "container"), MEMORY: (10.0, "container")}


def test_a_limit_above_the_machines_memory_is_ignored(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.times(busy=0, idle=0)
    machine.limited(cores=1, used_s=0, limit_bytes=10**9, used_bytes=1)
    assert values(machine.host()) == {MEMORY: (75.0, "machine")}


def test_without_proc_there_is_no_series(tmp_path: Path) -> None:
    assert HostMetrics(groups=ControlGroups(tmp_path, tmp_path), proc=tmp_path / "absent").read() == []


@given(
    before=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
    after=st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
    passed_s=st.floats(-1, 100),
    stat=st.sampled_from(["", "cpu  1 2\n", "cpu a b c d e\n", "intr 1\n"]),
)
def test_constant_falling_or_broken_counters_give_no_negative_value(
    tmp_path_factory: pytest.TempPathFactory,
    before: tuple[int, int],
    after: tuple[int, int],
    passed_s: float,
    stat: str,
) -> None:
    machine = Machine(tmp_path_factory.mktemp("machine"))
    machine.times(busy=before[0], idle=before[1])
    host = machine.host()
    machine.now_s = passed_s
    machine.times(busy=after[0], idle=after[1])
    assert all(reading.value >= 0 for reading in host.read() if isinstance(reading.value, float))
    (machine.root / "stat").write_text(stat)
    assert all(reading.metric is MEMORY for reading in host.read())


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="only Linux has /proc")
def test_load_on_this_machine_is_measured() -> None:
    host = HostMetrics()
    begun = os.times()
    while os.times().user - begun.user < 0.2:
        sum(range(10_000))
    readings = {reading.metric: reading.value for reading in host.read()}
    for metric in (CPU, MEMORY):
        value = readings[metric]
        assert isinstance(value, float)
        assert value > 0
