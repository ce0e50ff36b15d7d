"""The command kubectl for one cluster: every call has a deadline, errors quote kubectl."""

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from cluster.progress import ClusterError

Value = TypeVar("Value")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.2, 1.0


@dataclass(frozen=True, slots=True)
class Kubectl:
    """The command kubectl with one kubeconfig."""

    binary: Path
    kubeconfig: Path

    def __call__(self, *arguments: str, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run kubectl and return its output.

        Raises:
            ClusterError: kubectl failed or timed out; the message quotes its error.
        """
        try:
            done = self._run(arguments, stdin.encode() if stdin is not None else None, timeout_s)
        except subprocess.TimeoutExpired:
            raise ClusterError(f"kubectl {' '.join(arguments)}: no answer within {timeout_s:.0f} s") from None
        if done.returncode:
            raise ClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")

    def get(self, *arguments: str) -> Any:
        """Return an object or a list from `kubectl get`, decoded."""
        return json.loads(self("get", *arguments, "--output=json"))

    def items(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the objects of a list from `kubectl get`."""
        listed: list[dict[str, Any]] = self.get(*arguments)["items"]
        return listed

    def exists(self, *arguments: str) -> bool:
        """Return whether the object exists."""
        return bool(self("get", *arguments, "--ignore-not-found", "--output=name").strip())

    def apply(self, manifest: str | dict[str, Any]) -> None:
        """Apply a manifest: YAML text or an object."""
        self("apply", "--filename=-", stdin=manifest if isinstance(manifest, str) else json.dumps(manifest))

    def binary_output(self, *arguments: str, timeout_s: float = 120) -> bytes:
        """Run kubectl and return its output as bytes.

        Raises:
            ClusterError: kubectl failed; the message quotes its error.
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


@contextmanager
def repeating(action: Callable[[], object], *, pause_s: float = 0.0) -> Iterator[None]:
    """Repeat an action in a thread while the block runs; its exception ends both."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            action()
            over.wait(pause_s)

    with ThreadPoolExecutor(max_workers=1) as background:
        running = background.submit(repeat)
        try:
            yield
        finally:
            over.set()
        running.result()


def eventually(
    poll: Callable[[], Value | None], what: str, *, deadline_s: float, pause_s: float | None = None
) -> Value:
    """Call `poll` until it returns a true value, and return that value.

    Without `pause_s` the pauses grow: each kubectl takes CPU time from the pods that it waits for.

    Raises:
        ClusterError: the deadline passed; the message starts with `what`.
    """
    end = time.monotonic() + deadline_s
    growing_s = FIRST_PAUSE_S
    while not (value := poll()):
        if time.monotonic() > end:
            raise ClusterError(f"{what}: not within {deadline_s:.0f} s")
        time.sleep(growing_s if pause_s is None else pause_s)
        growing_s = min(1.5 * growing_s, LONGEST_PAUSE_S)
    return value
