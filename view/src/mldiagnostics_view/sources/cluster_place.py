"""Which cluster is shown: without the models of its objects, which take half a second to load."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ClusterPlace"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlace:
    """A cluster of the kubeconfig, and the namespace of the runs."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    all_namespaces: bool = False
