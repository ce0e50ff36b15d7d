"""Interface of cluster providers, and the choice of one."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cluster.durations import Expected
from cluster.progress import ClusterError


class Provider(Protocol):
    """Way to get a cluster."""

    name: str
    automatic: bool
    """Whether it is used without `CLUSTER=`."""
    tools: tuple[str, ...]
    """Tools that `up` uses."""
    start: Expected
    """The step that `up` is, with the tools."""

    @property
    def folder(self) -> Path:
        """Folder that is removed with the cluster."""

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of the administrator."""

    def obstacle(self) -> str | None:
        """Return the reason why it cannot run here and a remedy; None if it can run."""

    def packages(self) -> list[str]:
        """Return the Debian packages that `up` installs, because the machine lacks their programs."""

    def running(self) -> bool:
        """Return whether the cluster answers."""

    def up(self) -> None:
        """Start the cluster, unless it runs."""

    def load_image(self, archive: Path) -> None:
        """Load an image in `docker save` format into the cluster."""

    def may_pull(self, image: str) -> bool:
        """Return whether a pull of a public image is worth a try; needs no cluster."""

    def pull(self, image: str) -> bool:
        """Pull a public image into the cluster; return whether its pods have it now."""

    def down(self) -> None:
        """Remove the cluster and all its changes to the machine, if it exists."""

    def status(self) -> list[str]:
        """Return lines that describe which parts run."""


def choose(providers: Sequence[Provider], wanted: str) -> Provider:
    """Return the provider named `wanted`, else the first that works on this machine.

    Raises:
        ClusterError: no such provider, or none works; the message has the reason of each.
    """
    if wanted:
        for provider in providers:
            if provider.name == wanted:
                if reason := provider.obstacle():
                    raise ClusterError(f"CLUSTER={wanted} cannot run here: {reason}")
                return provider
        raise ClusterError(
            f"CLUSTER={wanted}: unknown provider; use one of {', '.join(each.name for each in providers)}"
        )
    reasons = []
    for provider in providers:
        if not provider.automatic:
            reasons.append(f"  {provider.name}: used only with CLUSTER={provider.name}")
        elif reason := provider.obstacle():
            reasons.append(f"  {provider.name}: {reason}")
        else:
            return provider
    raise ClusterError("no cluster can run on this machine:\n" + "\n".join(reasons))


def selected(providers: Sequence[Provider]) -> Provider:
    """Return the provider of `CLUSTER`, else the running one, else the first that works here."""
    wanted = os.environ.get("CLUSTER", "")
    if not wanted:
        for provider in providers:
            if provider.automatic and provider.running():
                return provider
    return choose(providers, wanted)
