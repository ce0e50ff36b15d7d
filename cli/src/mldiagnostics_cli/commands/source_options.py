"""Options that choose where runs are read: files below a root, or a cluster."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click
from mldiagnostics.locations import DEFAULT_STORAGE
from mldiagnostics_kube.client.cluster_options import ClusterOptions

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.options import STORAGE_VARIABLE

storage_option = click.option(
    "-s",
    "--storage",
    metavar="DIR|URL",
    envvar=STORAGE_VARIABLE,
    show_envvar=True,
    help=f"Root of runs: a directory, or a URL like s3://bucket/prefix; default: ./{DEFAULT_STORAGE} if it exists.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceChoice:
    """Options of a command about the place of runs; `runs.source.open_source` opens it."""

    storage: str | None = None
    cluster: ClusterOptions = field(default_factory=ClusterOptions)


def source_options(command: Any) -> Any:
    """Add `--storage` and the options of a cluster; pass them as `source`, a `SourceChoice`."""

    @wraps(command)
    def run(*arguments: Any, storage: str | None, cluster: ClusterOptions, **options: Any) -> Any:
        context = click.get_current_context()
        is_typed = context.get_parameter_source("storage") is click.core.ParameterSource.COMMANDLINE
        if is_typed and cluster.are_given:
            raise click.UsageError("--storage and options of a cluster: both are given; pass only one of them", context)
        return command(*arguments, source=SourceChoice(storage=storage, cluster=cluster), **options)

    return storage_option(cluster_options(all_namespaces=True)(run))
