"""Which cluster and namespace a user means, in the words of kubectl."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """Values of the options of a cluster; None where they are not given.

    These are `--namespace`, `--all-namespaces`, `--context` and `--kubeconfig`.
    """

    namespace: str | None = None
    all_namespaces: bool = False
    context: str | None = None
    kubeconfig: str | None = None

    @property
    def are_given(self) -> bool:
        """Return whether the user names a cluster or a namespace."""
        return self != ClusterOptions()

    @property
    def arguments(self) -> list[str]:
        """Return the options for the command line of another program."""
        values = {"--namespace": self.namespace, "--context": self.context, "--kubeconfig": self.kubeconfig}
        given = [f"{name}={value}" for name, value in values.items() if value is not None]
        return [*given, "--all-namespaces"] if self.all_namespaces else given
