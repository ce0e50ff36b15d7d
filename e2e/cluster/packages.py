"""Programs that come from the Linux distribution, installed when they are absent."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster.progress import ClusterError, step, tail

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
# Program to Debian package.
RUNTIME = {"containerd": "containerd", "runc": "runc", "iptables": "iptables", "ip": "iproute2", "umount": "mount"}
LOCK_TIMEOUT_S = 300
CNI_PACKAGE = "containernetworking-plugins"


def missing_packages(programs: Mapping[str, str], *, cni: bool = False) -> list[str]:
    """Debian packages of the programs that are not on the PATH, and of the CNI plugins if those are asked for."""
    packages = {package for program, package in programs.items() if shutil.which(program) is None}
    if cni and cni_binaries() is None:
        packages.add(CNI_PACKAGE)
    return sorted(packages)


def cni_binaries() -> Path | None:
    """The folder that holds the CNI plugins."""
    return next((folder for folder in CNI_FOLDERS if (folder / "bridge").exists()), None)


def install(packages: Iterable[str]) -> None:
    """Install Debian packages; nothing to do is no work."""
    wanted = list(packages)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(f"this machine has no apt-get; install what Debian calls {', '.join(wanted)} yourself")
    with step(f"installing Debian packages {' '.join(wanted)}", about_s=40):
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *wanted)


def _apt(*arguments: str) -> None:
    # Tests and tools install packages side by side; apt's lock is for one of them at a time.
    command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_TIMEOUT_S}"]
    command += arguments
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`apt-get {' '.join(arguments)}` ended with {done.returncode}:\n{tail(done.stderr)}")
