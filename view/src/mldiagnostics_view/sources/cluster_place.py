"""The shown cluster and the keys of its runs.

The models of its objects take half a second to load, so they are not imported here.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClusterPlace", "namespace_in"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """A cluster of the kubeconfig, and the namespace of the runs."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False


def namespace_in(key: str) -> str:
    """Return the namespace in the key of a run; empty if it has none.

    >>> namespace_in("ml:trainer"), namespace_in("trainer")
    ('ml', '')
    """
    return key.partition(":")[0] if ":" in key else ""
