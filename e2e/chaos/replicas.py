"""The pods of a part under test: memory, OOM kills, and signals to their processes."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cluster.progress import ClusterError
from demo.installation import NAMESPACE
from demo.kubectl import Kubectl, eventually
from release.parts import Part

PROC = Path("/proc")
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "": 1}
READY_DEADLINE_S = 120
PYTHON = "/opt/mldiagnostics/bin/python"
# Mounts a tmpfs with these options over a directory; without options removes it, even if it is in use.
MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
path, *options = (word.encode() for word in sys.argv[1:])
failed = libc.mount(b"tmpfs", path, b"tmpfs", 0, *options) if options else libc.umount2(path, 2)
sys.exit(os.strerror(ctypes.get_errno()) if failed else 0)
"""
Object = dict[str, Any]


def process(uid: str, word: str) -> int:
    """Return the process of a pod whose command line has `word`.

    Raises:
        ClusterError: this machine does not show such a process: it is another one's, or has exited.
    """
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            groups = (folder / "cgroup").read_text().replace("_", "-")
            if uid in groups and word.encode() in (folder / "cmdline").read_bytes():
                return int(folder.name)
    raise ClusterError(
        f"pod {uid}: this machine shows no process with {word!r}; run a cluster of this machine, as root"
    )


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Stop a process (SIGSTOP) while the block runs."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextmanager
def tiny_volume(pid: int, path: str, options: str) -> Iterator[None]:
    """Put a small tmpfs over a directory of a container while the block runs."""
    # The image has Python, but no mount.
    enter = ["nsenter", f"--target={pid}", "--mount", PYTHON, "-c", MOUNT, path]
    _run([*enter, f"{options},mode=1777"])
    try:
        yield
    finally:
        _run(enter)


class Replicas:
    """Pods of one installed part."""

    def __init__(self, kubectl: Kubectl, part: Part) -> None:
        self.name = part.name
        self.part = part.folder
        self._kubectl = kubectl
        self._word = f"mldiagnostics_{part.folder}"
        self._since = datetime.max.replace(tzinfo=UTC)

    def pods(self) -> list[Object]:
        """Return the pods that are not being deleted."""
        pods = self._kubectl.items("pods", f"--namespace={NAMESPACE}", f"--selector=app.kubernetes.io/name={self.name}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def addresses(self, port: int) -> list[str]:
        """Return the addresses of this port on all pods."""
        return [f"{pod['status']['podIP']}:{port}" for pod in self.pods()]

    def pid(self, pod: Object) -> int:
        """Return the process of a pod on this machine."""
        return process(pod["metadata"]["uid"], self._word)

    def leader(self) -> Object:
        """Return the pod that holds the Lease."""

        def poll() -> Object | None:
            lease = self._kubectl.get("lease", self.name, f"--namespace={NAMESPACE}")
            name = lease["spec"].get("holderIdentity", "").partition("/")[0]
            return next((pod for pod in self.pods() if pod["metadata"]["name"] == name), None)

        return eventually(poll, f"a leader of {self.name}", deadline_s=READY_DEADLINE_S)

    def kill(self, *pods: Object) -> None:
        """Kill the processes of these pods (SIGKILL)."""
        for pid in [self.pid(pod) for pod in pods]:
            os.kill(pid, signal.SIGKILL)

    def until_ready(self) -> None:
        """Wait until all pods are ready."""
        wanted = self._kubectl.get("deployment", self.name, f"--namespace={NAMESPACE}")["spec"]["replicas"]

        def ready() -> bool:
            conditions = [each for pod in self.pods() for each in pod["status"].get("conditions", ())]
            return bool(sum((each["type"], each["status"]) == ("Ready", "True") for each in conditions) == wanted)

        eventually(ready, f"{wanted} ready pods of {self.name}", deadline_s=READY_DEADLINE_S)

    def start_measuring(self) -> None:
        """Forget the highest memory and the restarts so far."""
        self._since = datetime.now(UTC).replace(microsecond=0)
        for pod in self.pods():
            with suppress(ClusterError, OSError):
                (PROC / str(self.pid(pod)) / "clear_refs").write_text("5")

    def memory_share(self) -> float:
        """Return the highest resident memory of a pod as a share of its limit; 0 if this machine does not show it."""
        shares = [0.0]
        for pod in self.pods():
            with suppress(ClusterError, OSError):
                status = (PROC / str(self.pid(pod)) / "status").read_text()
                peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
                shares.append(peak / quantity(pod["spec"]["containers"][0]["resources"]["limits"]["memory"]))
        return max(shares)

    def exits(self) -> list[str]:
        """Return how each process ended that was restarted since the start of the measurement."""
        return [
            f"{pod['metadata']['name']}: {end.get('reason')}, exit code {end.get('exitCode')}"
            for pod in self.pods()
            for container in pod["status"].get("containerStatuses", ())
            for end in (container["state"].get("terminated"), container["lastState"].get("terminated"))
            if end and _instant(end["finishedAt"]) >= self._since
        ]


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


def quantity(text: str) -> int:
    """Return the bytes of a memory quantity with a binary unit or none."""
    number, unit = re.fullmatch(r"(\d+)(\D*)", text).groups()  # type: ignore[union-attr]  # the chart's own value
    return int(number) * UNITS[unit]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ClusterError(f"`{' '.join(command)}` ended with {done.returncode}: {done.stderr.strip()}")
