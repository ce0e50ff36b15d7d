"""All providers, in the order in which they are tried."""

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
