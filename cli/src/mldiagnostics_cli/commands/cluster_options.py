"""Options that choose a cluster and a namespace, as kubectl has them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from mldiagnostics_kube.client.cluster_options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


F = TypeVar("F", bound="Callable[..., Any]")


_PARAMETERS = ("namespace", "across_namespaces", "context", "kubeconfig")


def chosen_cluster(values: Mapping[str, Any]) -> ClusterOptions:
    """Return the cluster that the parameters of a command name."""
    return ClusterOptions(
        namespace=values.get("namespace"),
        all_namespaces=bool(values.get("across_namespaces")),
        context=values.get("context"),
        kubeconfig=values.get("kubeconfig"),
    )


def cluster_options(*, all_namespaces: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the options and passes them as `cluster`, a `ClusterOptions`.

    Args:
        all_namespaces: Whether the command lists, so that it has `--all-namespaces`.
    """

    def decorate(command: Any) -> Any:
        @wraps(command)
        def run(*arguments: Any, **values: Any) -> Any:
            options = {name: value for name, value in values.items() if name not in _PARAMETERS}
            return command(*arguments, cluster=chosen_cluster(values), **options)

        run = click.option("--kubeconfig", metavar="FILE", type=click.Path(), help="Kubeconfig to use.")(run)
        run = click.option("--context", metavar="NAME", help="Context of the kubeconfig; default: the current one.")(
            run
        )
        if all_namespaces:
            run = click.option("-A", "--all-namespaces", "across_namespaces", is_flag=True, help="All namespaces.")(run)
        return click.option(
            "-n", "--namespace", metavar="NAME", help="Namespace in the cluster; default: that of the context."
        )(run)

    return decorate
