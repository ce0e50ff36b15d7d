"""`mldiag view`: runs, curves and goodput in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import examples

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


@click.command(
    epilog=examples(
        "mldiag view",
        "mldiag view mldiagnostics gs://bucket/runs",
        "mldiag view --cluster -n ml",
        "mldiag view --no-open --port 0",
    )
)
@click.argument("sources", nargs=-1, metavar="[DIR|URL]...")
@click.option("--cluster", "in_cluster", is_flag=True, help="The MLRuns of a cluster, read with your own rights.")
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Default: 8425, or the next free one; 0 for any.",
)
@click.option("--host", metavar="ADDRESS", help="Address to listen on; default: 127.0.0.1.")
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="Further host name of the URL; needed for another --host, as the page has no login. Repeatable.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser.")
@cluster_options(all_namespaces=True)
def view(
    *,
    sources: tuple[str, ...],
    in_cluster: bool,
    port: int | None,
    host: str | None,
    allowed_hosts: tuple[str, ...],
    no_open: bool,
    cluster: ClusterOptions,
) -> int:
    """Show runs, curves, goodput and profiles in a browser, until Ctrl-C. No internet is needed.

    The runs are those of directories, of buckets and of a cluster, together. Without any of them: MLDIAG_STORAGE, else
    ./mldiagnostics if it exists, else the cluster of the current context.
    """
    from mldiagnostics_cli.web_view import ViewOptions, start_view

    options = ViewOptions(port=port, host=host, allowed_hosts=allowed_hosts, opens_browser=not no_open)
    return start_view(sources, cluster, options, in_cluster=in_cluster)
