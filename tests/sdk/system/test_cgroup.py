"""Control groups, from test files in the kernel's formats and from this machine."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.system.cgroup import UNIFIED, ControlGroups, parse_memberships, parse_mounts

V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n"
V1 = """25 23 0:22 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
26 23 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
"""


def system(root: Path, mounts: str, memberships: str, files: dict[str, str]) -> ControlGroups:
    proc = root / "proc"
    proc.mkdir()
    (proc / "mountinfo").write_text(f"22 1 8:1 / / rw - ext4 /dev/vda rw\n{mounts}")
    (proc / "cgroup").write_text(memberships)
    for name, content in files.items():
        file = root / "sys/fs/cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return ControlGroups(root, proc)


def limits(groups: ControlGroups) -> tuple[float | None, float | None, int | None, int | None]:
    return groups.cores(), groups.cpu_s(), groups.memory_limit_bytes(), groups.memory_bytes()


def test_a_container_of_version_2_has_its_own_group_as_root(tmp_path: Path) -> None:
    files = {
        "cpu.max": "150000 100000\n",
        "cpu.stat": "usage_usec 2500000\nuser_usec 1\n",
        "memory.max": "1048576\n",
        "memory.current": "524288\n",
        "memory.stat": "anon 1\ninactive_file 24288\n",
    }
    assert limits(system(tmp_path, V2, "0::/\n", files)) == (1.5, 2.5, 1048576, 500000)


def test_the_lowest_limit_of_all_parents_applies(tmp_path: Path) -> None:
    files = {
        "kubepods/cpu.max": "max 100000\n",
        "kubepods/memory.max": "1000\n",
        "kubepods/pod/cpu.max": "50000 100000\n",
        "kubepods/pod/memory.max": "max\n",
        "kubepods/pod/c/cpu.max": "200000 100000\n",
        "kubepods/pod/c/memory.max": "2000\n",
    }
    groups = system(tmp_path, V2, "0::/kubepods/pod/c\n", files)
    assert (groups.cores(), groups.memory_limit_bytes()) == (0.5, 1000)


def test_version_1_has_a_hierarchy_for_each_controller(tmp_path: Path) -> None:
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
        "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "cpu,cpuacct/cpuacct.usage": "7000000000\n",
        "memory/memory.limit_in_bytes": "4096\n",
        "memory/memory.usage_in_bytes": "3000\n",
        "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 1000\n",
    }
    assert limits(system(tmp_path, V1, "3:cpu,cpuacct:/\n2:memory:/\n", files)) == (4.0, 7.0, 4096, 2000)


def test_version_1_writes_no_limit_as_minus_one_and_as_a_huge_number(tmp_path: Path) -> None:
    files = {
        "cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    groups = system(tmp_path, V1, "3:cpu,cpuacct:/\n2:memory:/\n", files)
    assert (groups.cores(), groups.memory_limit_bytes()) == (None, None)


def test_without_a_cgroup_namespace_the_group_is_below_the_mount(tmp_path: Path) -> None:
    mount = "26 23 0:23 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    files = {"memory/memory.limit_in_bytes": "77\n", "memory/inner/memory.limit_in_bytes": "99\n"}
    groups = system(tmp_path, mount, "2:memory:/docker/abc/inner\n", files)
    assert groups.memory_limit_bytes() == 77


def test_a_group_outside_the_mount_counts_as_the_mounted_one(tmp_path: Path) -> None:
    files = {"memory.max": "5\n"}
    assert system(tmp_path, V2, "0::/../../other\n", files).memory_limit_bytes() == 5


def test_without_control_groups_there_are_no_limits(tmp_path: Path) -> None:
    assert limits(ControlGroups(tmp_path, tmp_path / "absent")) == (None, None, None, None)


def test_escaped_blanks_in_a_mount_point_are_decoded() -> None:
    (mount,) = parse_mounts("30 23 0:26 / /sys\\040fs rw - cgroup2 cgroup2 rw\n")
    assert (mount.point, mount.controllers) == ("/sys fs", {UNIFIED})


@pytest.mark.skipif(not Path("/proc/self/cgroup").exists(), reason="only Linux has control groups")
def test_this_machine_can_be_read() -> None:
    groups = ControlGroups()
    cores, cpu_s, limit, used = limits(groups)
    assert cores is None or cores > 0
    assert cpu_s is None or cpu_s >= 0
    assert limit is None or limit > 0
    assert used is None or used >= 0


CONTENT = st.one_of(
    st.text(max_size=60),
    st.sampled_from(["max\n", "max 100000\n", "-1\n", "0 0\n", "100000 0\n", "9" * 30, "usage_usec\n", "12 ", "\n"]),
    st.integers(-(10**20), 10**20).map(str),
)


@given(mounts=st.text(max_size=200), memberships=st.text(max_size=200))
def test_any_content_of_proc_is_parsed_without_error(mounts: str, memberships: str) -> None:
    parse_mounts(mounts)
    assert all(path.startswith("/") for path in parse_memberships(memberships).values())


@given(
    files=st.dictionaries(
        st.sampled_from(["cpu.max", "cpu.stat", "memory.max", "memory.current", "memory.stat"]), CONTENT
    )
)
def test_any_content_of_the_files_is_parsed(tmp_path_factory: pytest.TempPathFactory, files: dict[str, str]) -> None:
    content = {name: text.encode("utf-8", "replace").decode() for name, text in files.items()}
    cores, cpu_s, limit, used = limits(system(tmp_path_factory.mktemp("group"), V2, "0::/\n", content))
    assert cores is None or cores > 0
    assert cpu_s is None or cpu_s >= 0
    assert limit is None or limit >= 0
    assert used is None or used >= 0
