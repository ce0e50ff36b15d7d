"""Programs from Debian packages, installed if they are missing."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster.durations import Expected
from cluster.progress import ClusterError, step, tail

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"))
# Debian package of each program.
RUNTIME = {"containerd": "containerd", "runc": "runc", "iptables": "iptables", "ip": "iproute2", "umount": "mount"}
LOCK_TIMEOUT_S = 300
CNI_PACKAGE = "containernetworking-plugins"


def missing_packages(programs: Mapping[str, str], *, cni: bool = False) -> list[str]:
    """Return the Debian packages of programs that are not on the PATH; `cni` adds the CNI plugins."""
    packages = {package for program, package in programs.items() if shutil.which(program) is None}
    if cni and cni_binaries() is None:
        packages.add(CNI_PACKAGE)
    return sorted(packages)


def cni_binaries() -> Path | None:
    """Return the folder of the CNI plugins, or None."""
    return next((folder for folder in CNI_FOLDERS if (folder / "bridge").exists()), None)


def installing(packages: Iterable[str]) -> list[Expected]:
    """Return the step that `install` is; an empty list of packages takes none."""
    names = " ".join(packages)
    return [Expected(f"Installing Debian packages {names}", 40)] if names else []


def install(packages: Iterable[str]) -> None:
    """Install Debian packages; an empty list does nothing."""
    wanted = list(packages)
    if not wanted:
        return
    if shutil.which("apt-get") is None:
        raise ClusterError(
            f"this machine has no apt-get; install the programs of the Debian packages {', '.join(wanted)}"
        )
    (expected,) = installing(wanted)
    with step(expected.title, about_s=expected.usual_s):
        _apt("update")
        _apt("install", "--yes", "--no-install-recommends", *wanted)


def _apt(*arguments: str) -> None:
    # Several processes may install packages at the same time: wait for apt's lock.
    command = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-o", f"DPkg::Lock::Timeout={LOCK_TIMEOUT_S}"]
    command += arguments
    # In a session of its own, and never killed: a half-installed package would fail the next installation.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
    try:
        log, _ = process.communicate()
    except BaseException:
        process.communicate()
        raise
    if process.returncode:
        raise ClusterError(f"`apt-get {' '.join(arguments)}` ended with {process.returncode}:\n{tail(log, 30)}")
