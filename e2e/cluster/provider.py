"""What every way to get a cluster offers, and which of them is used."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from cluster.progress import ClusterError


class Provider(Protocol):
    """A way to get a cluster."""

    name: str
    chosen_by_itself: bool

    @property
    def folder(self) -> Path:
        """A folder that lives and dies with the cluster."""

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig."""

    def obstacle(self) -> str | None:
        """Why this machine cannot run it, with what to do; None if it can."""

    def running(self) -> bool:
        """Whether the cluster is up and answers."""

    def up(self) -> None:
        """Make the cluster, or do nothing if it runs."""

    def load_image(self, archive: Path) -> None:
        """Give the cluster an image in `docker save` format."""

    def down(self) -> None:
        """Remove the cluster and all that it made on the machine; repeating does nothing."""

    def status(self) -> list[str]:
        """Lines that say which part runs."""


def choose(providers: Sequence[Provider], wanted: str) -> Provider:
    """The provider named by `wanted`, else the first that this machine can run.

    Raises:
        ClusterError: no such provider, or none can run; with the reason of each.
    """
    if wanted:
        for provider in providers:
            if provider.name == wanted:
                if reason := provider.obstacle():
                    raise ClusterError(f"CLUSTER={wanted} cannot run here: {reason}")
                return provider
        raise ClusterError(f"CLUSTER={wanted} is unknown; use one of {', '.join(each.name for each in providers)}")
    reasons = []
    for provider in providers:
        if not provider.chosen_by_itself:
            reasons.append(f"  {provider.name}: used only when asked for with CLUSTER={provider.name}")
        elif reason := provider.obstacle():
            reasons.append(f"  {provider.name}: {reason}")
        else:
            return provider
    raise ClusterError("no cluster can be made on this machine:\n" + "\n".join(reasons))


def selected(providers: Sequence[Provider]) -> Provider:
    """The provider to work with: `CLUSTER=`, else the one whose cluster runs, else what the machine can do."""
    wanted = os.environ.get("CLUSTER", "")
    if not wanted:
        for provider in providers:
            if provider.chosen_by_itself and provider.running():
                return provider
    return choose(providers, wanted)
