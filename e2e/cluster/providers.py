"""All providers, in the order of preference."""

import os

from cluster.bare import Bare
from cluster.current import Current
from cluster.kind import Kind
from cluster.provider import Provider, selected

PROVIDERS: tuple[Provider, ...] = (Kind(), Bare(), Current())


def provider() -> Provider:
    """Return the provider of `CLUSTER`, else the running one, else the first that works here.

    Raises:
        ClusterError: no provider works on this machine; the message has the reason of each.
    """
    return selected(PROVIDERS)


def removable() -> tuple[Provider, ...]:
    """Return the providers whose clusters `down` removes: that of `CLUSTER`, else all automatic ones."""
    wanted = os.environ.get("CLUSTER", "")
    return tuple(each for each in PROVIDERS if each.name == wanted or (not wanted and each.automatic))
