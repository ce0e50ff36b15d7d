"""`mldiag runs`: list, get, watch, compare, edit and delete runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.completed_values import complete_groups, complete_metrics, complete_runs, complete_tags
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, since_option
from mldiagnostics_cli.commands.source_options import source_options

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.outcome import Phase

    from mldiagnostics_cli.commands.source_options import SourceChoice


PHASES = ("Pending", "Active", "Completed", "Failed")

run_argument = click.argument("run", shell_complete=complete_runs)
group_option = click.option(
    "-g", "--group", metavar="NAME", shell_complete=complete_groups, help="Only runs of this group."
)
tag_option = click.option("--tag", metavar="TAG", shell_complete=complete_tags, help="Only runs with this tag.")
phase_option = click.option(
    "-p", "--phase", type=click.Choice(PHASES, case_sensitive=False), help="Only runs in this phase."
)
metric_option = click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_metrics,
    help="Plot this metric; may be repeated.",
)
rank_option = click.option(
    "--rank", type=click.IntRange(min=0), metavar="N", default=0, show_default=True, help="Rank whose metrics are read."
)


@click.group(epilog=examples("mldiag runs list", "mldiag runs compare 4f6c 81aa"))
def runs() -> None:
    """List, show, watch, compare, edit and delete runs, of a cluster, a directory or a bucket.

    RUN is the id of a run or its beginning, its name, or its directory. In a cluster it may be the name of the
    MLRun, or a workload such as jobset/trainer.
    A word that is the name of one run and begins the id of another is rejected, and both are listed.

    Runs are read from the cluster if -n, -A, --context or --kubeconfig is given; else from files if --storage or
    MLDIAG_STORAGE is given, or ./mldiagnostics exists; else from the cluster of the current context.
    """


@runs.command(
    "list",
    epilog=examples(
        "mldiag runs list",
        "mldiag runs list -n research --phase Active -o wide",
        "mldiag runs list --storage gs://bucket/runs",
        "mldiag runs list --group sweep-7 --since 24h -o json",
    ),
)
@source_options
@group_option
@tag_option
@phase_option
@since_option
@click.option("--name", metavar="PATTERN", help="Only runs of this name; * and ? stand for any characters.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most N runs, the newest.")
@output_option()
def _list(
    *,
    source: SourceChoice,
    group: str | None,
    tag: str | None,
    phase: Phase | None,
    since: float | None,
    name: str | None,
    limit: int | None,
    output: OutputFormat,
) -> None:
    """List runs, the newest first."""
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.listing import show_runs
    from mldiagnostics_cli.runs.opening import open_source

    with open_source(source) as opened:
        show_runs(opened, RunFilter(run_group=group, tag=tag, phase=phase, since=since, name=name, limit=limit), output)


@runs.command(
    "get",
    epilog=examples(
        "mldiag runs get 4f6c",
        "mldiag runs get trainer --hosts",
        "mldiag runs get trainer --texts",
        "mldiag runs get gs://bucket/runs/4f6c12 --metric loss",
        "mldiag runs get 4f6c -o yaml",
    ),
)
@run_argument
@source_options
@click.option("--hosts", is_flag=True, help="Show each rank with its host; -o wide does so too.")
@click.option("--texts", is_flag=True, help="Show the newest texts that the program has recorded.")
@metric_option
@rank_option
@output_option()
def _get(
    *,
    run: str,
    source: SourceChoice,
    hosts: bool,
    texts: bool,
    metrics: tuple[str, ...],
    rank: int,
    output: OutputFormat,
) -> None:
    """Show one run: phase, progress, attempts, profiles, hosts, texts and curves.

    RUN is the id of the run or its beginning, its name, or its directory.
    """
    from mldiagnostics_cli.runs.detail import DetailQuery, show_run
    from mldiagnostics_cli.runs.opening import open_source

    with open_source(source, [run]) as opened:
        show_run(opened, run, DetailQuery(with_hosts=hosts, with_texts=texts, metrics=metrics, rank=rank), output)


@runs.command(
    "watch", epilog=examples("mldiag runs watch", "mldiag runs watch 4f6c", "mldiag runs watch --group sweep-7 -o json")
)
@click.argument("run", required=False, shell_complete=complete_runs)
@source_options
@group_option
@phase_option
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    metavar="SECONDS",
    default=5.0,
    show_default=True,
    help="Time between two reads.",
)
@output_option(OutputFormat.TABLE, OutputFormat.WIDE, OutputFormat.JSON)
def _watch(
    *,
    run: str | None,
    source: SourceChoice,
    group: str | None,
    phase: Phase | None,
    interval: float,
    output: OutputFormat,
) -> None:
    """Print runs, and a line for each change.

    With RUN, it ends with this run: with 0 if the run has completed, with 1 if it has failed.
    """
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.opening import open_source
    from mldiagnostics_cli.runs.watch import watch_run, watch_runs

    if run is not None and (group or phase):
        raise click.UsageError("RUN and a filter: both are given; pass only one of them", click.get_current_context())
    with open_source(source, [run] if run else ()) as opened:
        if run is None:
            watch_runs(opened, RunFilter(run_group=group, phase=phase), output, interval_s=interval)
        else:
            watch_run(opened, run, output, interval_s=interval)


@runs.command(
    "compare",
    epilog=examples(
        "mldiag runs compare 4f6c 81aa",
        "mldiag runs compare 4f6c 81aa --metric loss",
        "mldiag runs compare --group sweep-7 -o json",
    ),
)
@click.argument("run", nargs=-1, shell_complete=complete_runs)
@source_options
@click.option(
    "-g", "--group", metavar="NAME", shell_complete=complete_groups, help="Compare the runs of this group too."
)
@metric_option
@rank_option
@output_option(OutputFormat.TABLE, OutputFormat.JSON, OutputFormat.YAML)
def _compare(
    *,
    run: tuple[str, ...],
    source: SourceChoice,
    group: str | None,
    metrics: tuple[str, ...],
    rank: int,
    output: OutputFormat,
) -> None:
    """Compare runs: progress, goodput, configurations that differ, last metrics and curves."""
    from mldiagnostics.runs.run_filter import RunFilter

    from mldiagnostics_cli.runs.comparison import compare_runs, runs_to_compare
    from mldiagnostics_cli.runs.opening import open_source

    if len(run) < 2 and group is None:
        given = run[0] if run else "no run"
        raise click.UsageError(f"{given}: pass two runs or more to compare, or --group", click.get_current_context())
    with open_source(source, run) as opened:
        rows = runs_to_compare(opened, run, RunFilter(run_group=group) if group else None)
        compare_runs(opened, rows, output, metrics=metrics, rank=rank)


@runs.command(
    "edit",
    epilog=examples(
        "mldiag runs edit 4f6c --name baseline",
        "mldiag runs edit trainer --add-tag baseline --notes 'first run with the new data'",
        "mldiag runs edit 4f6c 81aa --remove-tag baseline",
        "mldiag runs edit 4f6c --reset",
    ),
)
@click.argument("run", nargs=-1, required=True, shell_complete=complete_runs)
@source_options
@click.option("--name", metavar="NAME", help="Name of the run for people; '' for the one that the program gave.")
@click.option("--notes", metavar="TEXT", help="Remarks about the run, for people.")
@click.option(
    "--add-tag",
    "added_tags",
    multiple=True,
    metavar="TAG",
    shell_complete=complete_tags,
    help="Add this tag; may be repeated.",
)
@click.option(
    "--remove-tag",
    "removed_tags",
    multiple=True,
    metavar="TAG",
    shell_complete=complete_tags,
    help="Remove this tag; may be repeated.",
)
@click.option("--reset", is_flag=True, help="Undo earlier changes first, so that the words of the program count again.")
@output_option()
def _edit(
    *,
    run: tuple[str, ...],
    source: SourceChoice,
    name: str | None,
    notes: str | None,
    added_tags: tuple[str, ...],
    removed_tags: tuple[str, ...],
    reset: bool,
    output: OutputFormat,
) -> None:
    """Change the name, tags and notes of runs, also while they run.

    Of files, the changes are in <storage>/edits, and every command and page shows them. In a cluster they are in the
    spec of the MLRun.
    """
    from mldiagnostics_cli.runs.editing import edit_runs
    from mldiagnostics_cli.runs.opening import open_source
    from mldiagnostics_cli.runs.run_edit import RunEdit

    edit = RunEdit(name=name, notes=notes, added_tags=added_tags, removed_tags=removed_tags, is_reset=reset)
    if edit == RunEdit():
        raise click.UsageError(
            "no change is given; pass --name, --notes, --add-tag, --remove-tag or --reset", click.get_current_context()
        )
    with open_source(source, run) as opened:
        edit_runs(opened, run, edit, output)


@runs.command(
    "delete",
    epilog=examples(
        "mldiag runs delete trainer",
        "mldiag runs delete 4f6c12ab 81aa34cd --yes",
        "mldiag runs delete trainer --dry-run",
    ),
)
@click.argument("run", nargs=-1, required=True, shell_complete=complete_runs)
@source_options
@click.option("-y", "--yes", is_flag=True, help="Do not ask for a confirmation.")
@click.option("--force", is_flag=True, help="Delete runs that are Pending or Active too.")
@click.option("--dry-run", is_flag=True, help="Only show the files that would be deleted.")
@output_option()
def _delete(
    *, run: tuple[str, ...], source: SourceChoice, yes: bool, force: bool, dry_run: bool, output: OutputFormat
) -> None:
    """Delete runs with all their files: records, configurations and profiles.

    The beginning of an id must have 8 characters or more.

    In a cluster the MLRuns are deleted, and their files are kept.
    """
    from mldiagnostics_cli.runs.deletion import delete_runs
    from mldiagnostics_cli.runs.opening import open_source

    with open_source(source, run) as opened:
        delete_runs(opened, run, output, yes=yes, force=force, dry_run=dry_run)
