"""kubectl as the demo and the cluster tests use it: one cluster, every call with a deadline, errors with its words."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cluster.progress import ClusterError

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig."""

    binary: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run kubectl and return what it prints.

        Raises:
            ClusterError: it failed or did not end in time; the message quotes it.
        """
        try:
            done = self._run(arguments, stdin.encode() if stdin is not None else None, timeout_s)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"kubectl {' '.join(arguments)}: no answer within {timeout_s:.0f} s") from None
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")

    def get(self, *arguments: str) -> Any:
        """What `kubectl get` knows about one object or a list, decoded."""
        return json.loads(self("get", *arguments, "--output=json"))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """The objects of a `kubectl get` of several."""
        listed: list[dict[str, Any]] = self.get(*arguments)["items"]
        return listed

    def exists(self, *arguments: str) -> bool:
        """Whether `kubectl get` finds the object."""
        return bool(self("get", *arguments, "--ignore-not-found", "--output=name").strip())

    def apply(self, manifest: str | dict[str, Any]) -> None:
        """Apply a manifest, given as YAML text or as an object."""
        self("apply", "--filename=-", stdin=manifest if isinstance(manifest, str) else json.dumps(manifest))

    def binary_output(self, *arguments: str, timeout_s: float = 120) -> bytes:
        """Run kubectl and return its output unread, such as an archive.

        Raises:
            ClusterError: it failed; the message quotes it.
        """
        done = self._run(arguments, None, timeout_s)
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout

    def _run(
        self, arguments: tuple[str, ...], stdin: bytes | None, timeout_s: float
    ) -> subprocess.CompletedProcess[bytes]:
        command = [str(self.binary), f"--kubeconfig={self.kubeconfig}", *arguments]
        return subprocess.run(command, input=stdin, capture_output=True, timeout=timeout_s, check=False)


def eventually(look: Callable[[], Found | None], what: str, *, deadline_s: float, pause_s: float = 0.3) -> Found:
    """Look until something (truthy) is found, and return it.

    Raises:
        ClusterError: `what` did not come within the deadline.
    """
    end = time.monotonic() + deadline_s
    while not (found := look()):
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not within {deadline_s:.0f} s")
        time.sleep(pause_s)
    return found
