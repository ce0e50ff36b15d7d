"""`mldiag runs`: list, get, watch, compare and delete runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.options import examples, output_option, since_option, storage_option

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.outcome import Phase

    from mldiagnostics_cli.commands.options import OutputFormat

__all__ = ["runs"]

PHASES = ("Pending", "Active", "Completed", "Failed")

run_argument = click.argument("run")


@click.group(epilog=examples("mldiag runs list", "mldiag runs get 4f6c --hosts"))
def runs() -> None:
    """List and show runs, from a directory or a bucket.

    RUN is the id of a run or its beginning, its name, or its directory.
    """


@runs.command(
    "list",
    epilog=examples(
        "mldiag runs list",
        "mldiag runs list --storage gs://bucket/runs --phase Active -o wide",
        "mldiag runs list --group sweep-7 --since 24h -o json",
    ),
)
@storage_option
@click.option("-g", "--group", metavar="NAME", help="Only runs of this group.")
@click.option("-p", "--phase", type=click.Choice(PHASES, case_sensitive=False), help="Only runs in this phase.")
@since_option
@click.option("--name", metavar="PATTERN", help="Only runs of this name; * and ? stand for any characters.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N runs, the newest.")
@output_option
def _list(
    *,
    storage: str,
    group: str | None,
    phase: Phase | None,
    since: float | None,
    name: str | None,
    limit: int | None,
    output: OutputFormat,
) -> None:
    """List runs, the newest first."""
    from mldiagnostics_cli.runs.listing import RunFilter, show_runs

    show_runs(storage, RunFilter(group=group, phase=phase, since=since, name=name, limit=limit), output)


@runs.command(
    "get",
    epilog=examples(
        "mldiag runs get 4f6c",
        "mldiag runs get trainer --hosts",
        "mldiag runs get gs://bucket/runs/4f6c12 --metric loss",
        "mldiag runs get 4f6c -o yaml",
    ),
)
@run_argument
@storage_option
@click.option("--hosts", is_flag=True, help="Show each rank with its host; -o wide does so too.")
@click.option("-m", "--metric", "metrics", multiple=True, metavar="NAME", help="Plot this metric; may be repeated.")
@click.option("--rank", type=click.IntRange(min=0), metavar="N", default=0, help="Rank whose metrics are plotted.")
@output_option
def _get(*, run: str, storage: str, hosts: bool, metrics: tuple[str, ...], rank: int, output: OutputFormat) -> None:
    """Show one run: phase, progress, attempts, profiles, hosts and curves.

    RUN is the id of the run or its beginning, its name, or its directory.
    """
    from mldiagnostics_cli.runs.detail import DetailQuery, show_run

    show_run(storage, run, DetailQuery(with_hosts=hosts, metrics=metrics, rank=rank), output)
