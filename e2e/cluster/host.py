"""Machine settings that the bare cluster changes: recorded before the start, restored at removal."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from cluster import netfilter
from cluster.node import BRIDGE, NODE_ADDRESS
from cluster.progress import ClusterError

CGROUPS = Path("/sys/fs/cgroup")
SYSCTLS = Path("/proc/sys")
# Set by kubelet, kube-proxy and the bridge plugin.
CHANGED_SYSCTLS = (
    "net/ipv4/ip_forward",
    "net/ipv4/conf/all/route_localnet",
    "net/bridge/bridge-nf-call-iptables",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
)
# Folders with a fixed path in kubelet, containerd's shim and CNI; removed only if the cluster created them.
FIXED_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log/containers", "/run/containerd", "/run/xtables.lock")


@dataclass(frozen=True, slots=True)
class MachineState:
    """Sysctls by path, iptables chains by family, and existing fixed folders."""

    sysctls: dict[str, str]
    chains: dict[str, list[tuple[str, str]]]
    folders: list[str]

    @classmethod
    def observe(cls) -> "MachineState":
        """Read the current state."""
        present = {name: SYSCTLS / name for name in CHANGED_SYSCTLS if (SYSCTLS / name).exists()}
        return cls(
            sysctls={name: path.read_text().strip() for name, path in present.items()},
            chains={family: sorted(chains) for family, chains in netfilter.existing_chains().items()},
            folders=[name for name in FIXED_FOLDERS if Path(name).exists()],
        )

    def save(self, path: Path) -> None:
        """Write the state to a file."""
        path.write_text(json.dumps(asdict(self), indent=2))

    @classmethod
    def load(cls, path: Path) -> "MachineState":
        """Read a state from a file."""
        content = json.loads(path.read_text())
        content["chains"] = {
            family: [(table, chain) for table, chain in chains] for family, chains in content["chains"].items()
        }
        return cls(**content)

    def restore(self) -> None:
        """Restore rules, sysctls and fixed folders."""
        netfilter.remove_cluster_rules({family: set(chains) for family, chains in self.chains.items()})
        for name, value in self.sysctls.items():
            if (SYSCTLS / name).read_text().strip() != value:
                (SYSCTLS / name).write_text(value)
        for name in FIXED_FOLDERS:
            if name in self.folders:
                continue
            if Path(name).is_dir():
                shutil.rmtree(name)
            else:
                Path(name).unlink(missing_ok=True)


def make_bridge() -> None:
    """Create the bridge of the pods before the first pod, so that servers can listen on it."""
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{NODE_ADDRESS}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")
    (SYSCTLS / "net/ipv4/ip_forward").write_text("1")


def remove_bridge() -> None:
    """Remove the bridge of the pods, if it exists."""
    if Path("/sys/class/net", BRIDGE).exists():
        _ip("link", "delete", BRIDGE)


def pod_cgroups() -> list[Path]:
    """Return the cgroups of a kubelet's pods: one per controller in version 1, one in version 2."""
    return [path for path in (CGROUPS / "kubepods", *sorted(CGROUPS.glob("*/kubepods"))) if path.is_dir()]


def pod_processes() -> set[int]:
    """Return all processes of all pods, by cgroup."""
    pids: set[int] = set()
    for root in pod_cgroups():
        for file in root.rglob("cgroup.procs"):
            with suppress(OSError):
                pids.update(int(pid) for pid in file.read_text().split() if pid != "0")
    return pids


def shims(socket: Path) -> set[int]:
    """Return the runtime shims of the containerd at this socket; they outlive it."""
    pids: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (folder / "cmdline").read_bytes().split(b"\0")
            if words[0].endswith(b"containerd-shim-runc-v2") and str(socket).encode() in words:
                pids.add(int(folder.name))
    return pids


def kill_pods(socket: Path, *, deadline_s: float = 15) -> None:
    """Kill all pods and their shims, and remove the cgroups of the pods."""
    end = time.monotonic() + deadline_s
    while remaining := pod_processes() | shims(socket):
        if time.monotonic() > end:
            raise ClusterError(
                f"processes {sorted(remaining)} of pods do not exit after SIGKILL; inspect them with `ps -f`"
            )
        for pid in remaining:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for root in pod_cgroups():
        for folder in sorted((each for each in root.rglob("*") if each.is_dir()), reverse=True):
            folder.rmdir()
        root.rmdir()


def unmount(folders: Iterable[Path]) -> None:
    """Unmount all mounts at or below the folders, the innermost first."""
    for mount in mounts_below(Path("/proc/self/mountinfo").read_text(), [str(folder) for folder in folders]):
        subprocess.run(["umount", "--lazy", mount], capture_output=True, check=False)


def mounts_below(mountinfo: str, folders: Iterable[str]) -> list[str]:
    """Return the mount points at or below the folders, in unmount order (proc_pid_mountinfo(5))."""
    points = [line.split()[4].replace("\\040", " ") for line in mountinfo.splitlines()]
    roots = tuple(folders)
    below = [point for point in points if any(point == root or point.startswith(f"{root}/") for root in roots)]
    return below[::-1]


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`ip {' '.join(arguments)}` ended with {done.returncode}: {done.stderr.strip()}")
