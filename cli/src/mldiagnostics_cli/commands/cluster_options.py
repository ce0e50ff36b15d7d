"""Options that choose a cluster and a namespace, as kubectl has them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mldiagnostics_cli.cluster.options import ClusterOptions

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cluster_options"]

F = TypeVar("F", bound="Callable[..., Any]")


def cluster_options(*, all_namespaces: bool = False) -> Callable[[F], F]:
    """Return a decorator that adds the options and passes them as `cluster`, a `ClusterOptions`.

    Args:
        all_namespaces: Whether the command lists, so that it has `--all-namespaces`.
    """

    def decorate(command: Any) -> Any:
        @wraps(command)
        def run(
            *arguments: Any,
            namespace: str | None,
            context: str | None,
            kubeconfig: str | None,
            across_namespaces: bool = False,
            **options: Any,
        ) -> Any:
            chosen = ClusterOptions(
                namespace=namespace, all_namespaces=across_namespaces, context=context, kubeconfig=kubeconfig
            )
            return command(*arguments, cluster=chosen, **options)

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
