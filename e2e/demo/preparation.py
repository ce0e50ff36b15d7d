"""`python -m demo.preparation [tools|images]`: get the tools and images of the cluster's part.

The demo runs both beside its first part, at low priority, and at the same time: images mostly wait for the network.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from typing import Self

from cluster import addons, images, packages, sources
from cluster.durations import Expected
from cluster.paths import E2E, cache
from cluster.progress import ClusterError, echo, tail
from cluster.provider import Provider
from cluster.providers import provider
from cluster.tools import in_order, pending, tool
from release.parts import PARTS

from demo import installation, on_cluster


class Preparation:
    """The preparation as one process for tools and one for images, each with a log in the cache."""

    def __init__(self) -> None:
        cache().mkdir(parents=True, exist_ok=True)
        self.logs = {part: cache() / f"demo-preparation-{part}.log" for part in WORK}
        self._read = dict.fromkeys(WORK, 0)
        command = ["nice", "-n", "10", sys.executable, "-m", "demo.preparation"]
        self._processes = {}
        for part, path in self.logs.items():
            with path.open("wb") as log:
                self._processes[part] = subprocess.Popen(
                    [*command, part], cwd=E2E, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it; finished tools stay in the cache."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait()

    def lines(self) -> list[str]:
        """Return the whole lines that it has written since the last call, each with the name of its part."""
        return [f"{part}: {line}" for part in WORK for line in self._lines_of(part)]

    def finished(self) -> bool:
        """Return whether it has ended.

        Raises:
            ClusterError: a part of it failed; the message quotes its log.
        """
        states = {part: process.poll() for part, process in self._processes.items()}
        for part, status in states.items():
            if status:
                log = self.logs[part]
                raise ClusterError(f"{part}: status {status}; {log} ends with:\n{tail(log.read_text())}")
        return None not in states.values()

    def _lines_of(self, part: str) -> list[str]:
        with self.logs[part].open("rb") as log:
            log.seek(self._read[part])
            whole, newline, _ = log.read().rpartition(b"\n")
        self._read[part] += len(whole) + len(newline)
        return whole.decode(errors="replace").splitlines()


def needed_tools(chosen: Provider) -> list[str]:
    """Return the tools of the cluster's part, in the order in which they are made."""
    return in_order((*chosen.tools, "kubectl", "helm", *addons.tools_of(installation.ADDON, chosen)))


def preparing(chosen: Provider) -> list[list[Expected]]:
    """Return the steps of the preparation that are still to be done: first those of the tools, then of the images."""
    tools = pending(needed_tools(chosen))
    compiler = sources.pending_go() if any(step.title.startswith("Building") for step in tools) else []
    installed = packages.installing(chosen.packages())
    return [[*compiler, *tools], [*installed, *images.pending(installation.IMAGES, installation.CONTEXT)]]


def following(chosen: Provider) -> list[Expected]:
    """Return the steps from a started cluster to its result."""
    loads = [images.loading(reference) for _, reference in installation.IMAGES]
    charts = [installation.installing(part) for part in PARTS]
    applying, waiting = addons.installing(installation.ADDON)
    return [chosen.start, applying, *loads, waiting, *charts, on_cluster.TRAINING]


def prepare_tools(chosen: Provider) -> None:
    """Get the tools, unless they are there."""
    for name in needed_tools(chosen):
        tool(name)


def prepare_images(chosen: Provider) -> None:
    """Install the programs of the cluster, and build the images, unless they are there or cannot be built here."""
    packages.install(chosen.packages())
    if images.obstacle() is None:
        for dockerfile, reference in installation.IMAGES:
            images.build(dockerfile, installation.CONTEXT, reference)


WORK = {"tools": prepare_tools, "images": prepare_images}


def main(parts: list[str]) -> int:
    """Prepare the cluster that this machine supports; without one there is nothing to do."""
    return prepare(WORK[part] for part in parts or WORK)


def prepare(works: Iterable[Callable[[Provider], None]]) -> int:
    """Do these works for the cluster that this machine supports, if it supports one; return the exit status."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # stops a build too
    try:
        chosen = provider()
    except ClusterError as error:
        echo(str(error))
        return 0
    try:
        for work in works:
            work(chosen)
    except ClusterError as error:
        echo(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
