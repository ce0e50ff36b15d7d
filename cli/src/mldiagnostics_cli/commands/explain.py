"""`mldiag explain`: why a pod has a run, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


@click.command(
    epilog=examples(
        "mldiag explain trainer-0", "mldiag explain jobset/trainer -n ml", "mldiag explain job/eval -o json"
    )
)
@click.argument("target", metavar="POD|KIND/NAME")
@cluster_options()
@output_option(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def explain(*, target: str, cluster: ClusterOptions, output: OutputFormat) -> None:
    """Explain whether the webhook injects a run into a pod or the pods of a workload, and why.

    The decision is the webhook's own. For a pod that exists, it is the one of its creation.
    """
    from mldiagnostics_cli.injection.reading import show_explanation

    show_explanation(target, cluster, output)
