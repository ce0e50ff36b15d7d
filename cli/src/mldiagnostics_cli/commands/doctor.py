"""`mldiag doctor`: working and broken parts, and how to mend them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, storage_option

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


@click.command(
    epilog=examples(
        "mldiag doctor",
        "mldiag doctor trainer-0 -n ml",
        "mldiag doctor jobset/trainer -n ml -o json",
        "mldiag doctor --storage gs://bucket/runs",
    )
)
@click.argument("target", metavar="[POD|KIND/NAME]", required=False)
@cluster_options()
@storage_option
@output_option(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
@click.pass_context
def doctor(
    context: click.Context, *, target: str | None, cluster: ClusterOptions, storage: str, output: OutputFormat
) -> None:
    """Check this machine, the cluster, and a pod or workload in it.

    Each line is fine, broken or unknown, with the reason and the command that mends it. A labelled pod is created in
    the namespace as a dry run, and a small file is written to --storage and deleted; in a pod that is named, a program
    does so in the storage of its run. Without a kubeconfig, only this machine is checked.

    Exit codes: 0 nothing is broken, 1 a part is broken.
    """
    from mldiagnostics_cli.doctor.diagnosis import diagnose

    is_given = context.get_parameter_source("storage") is not click.core.ParameterSource.DEFAULT
    diagnose(target, cluster, storage=storage, storage_is_given=is_given, output=output)
