"""`python -m demo.preparation`: get the tools and images of the cluster's part, one after the other.

The demo runs this beside its first part, at low priority.
"""

import signal
import subprocess
import sys
from typing import Self

from cluster import addons, images, sources
from cluster.durations import Expected
from cluster.paths import E2E, cache
from cluster.progress import ClusterError, echo, tail
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import in_order, pending, tool
from release.parts import PARTS

from demo import installation, on_cluster


class Preparation:
    """The preparation as a process of its own; its output goes to a log in the cache."""

    def __init__(self) -> None:
        cache().mkdir(parents=True, exist_ok=True)
        self.log = cache() / "demo-preparation.log"
        self._read = 0
        command = ["nice", "-n", "10", sys.executable, "-m", "demo.preparation"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(command, cwd=E2E, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it; finished tools stay in the cache."""
        self._process.terminate()
        self._process.wait()

    def lines(self) -> list[str]:
        """Return the whole lines that it has written since the last call."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            whole, newline, _ = log.read().rpartition(b"\n")
        self._read += len(whole) + len(newline)
        return whole.decode(errors="replace").splitlines()

    def finished(self) -> bool:
        """Return whether it has ended.

        Raises:
            ClusterError: it failed; the message quotes its log.
        """
        if status := self._process.poll():
            raise ClusterError(
                f"tools and images: status {status}; {self.log} ends with:\n{tail(self.log.read_text())}"
            )
        return status is not None


def needed_tools(chosen: Provider) -> list[str]:
    """Return the tools of the cluster's part, in the order in which they are made."""
    return in_order((*chosen.tools, "kubectl", "helm", *addons.tools_of(installation.ADDON, chosen)))


def preparing(chosen: Provider) -> list[Expected]:
    """Return the steps of the preparation that are still to be done."""
    tools = pending(needed_tools(chosen))
    compiler = sources.pending_go() if any(step.title.startswith("Building") for step in tools) else []
    return [*compiler, *tools, *images.pending(reference for _, reference in installation.IMAGES)]


def following(chosen: Provider) -> list[Expected]:
    """Return the steps from a started cluster to its result."""
    loads = [images.loading(reference) for _, reference in installation.IMAGES]
    charts = [installation.installing(part) for part in PARTS]
    return [chosen.start, addons.installing(installation.ADDON), *loads, *charts, on_cluster.TRAINING]


def prepare(chosen: Provider) -> None:
    """Get the tools, then the images, unless they are there."""
    for name in needed_tools(chosen):
        tool(name)
    if images.obstacle() is None:
        for dockerfile, reference in installation.IMAGES:
            images.build(dockerfile, installation.CONTEXT, reference)


def main() -> int:
    """Prepare the cluster that this machine supports; without one there is nothing to do."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops a build too
    try:
        chosen = provider()
    except ClusterError as error:
        echo(str(error))
        return 0
    try:
        prepare(chosen)
    except ClusterError as error:
        echo(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
