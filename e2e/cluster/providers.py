"""All providers, in the order in which they are tried."""

import os

from cluster.bare import Bare
from cluster.current import Current
from cluster.kind import Kind
from cluster.provider import Provider, selected

PROVIDERS: tuple[Provider, ...] = (Kind(), Bare(), Current())


def provider() -> Provider:
    """The provider to work with: `CLUSTER=`, else the one whose cluster runs, else what the machine can do.

    Raises:
        ClusterError: none can run here; the message says why each cannot.
    """
    return selected(PROVIDERS)


def standing() -> tuple[Provider, ...]:
    """The providers whose clusters `down` removes: the one named by `CLUSTER=`, else all that may have made one."""
    wanted = os.environ.get("CLUSTER", "")
    return tuple(each for each in PROVIDERS if each.name == wanted or (not wanted and each.chosen_by_itself))
