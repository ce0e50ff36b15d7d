"""`mldiag schedules`: list, show, create, suspend, resume and delete schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.cluster_options import cluster_options
from mldiagnostics_cli.commands.completed_values import complete_schedules
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option
from mldiagnostics_cli.commands.schedule_options import cron_option, time_zone_option, trigger_option

if TYPE_CHECKING:
    from mldiagnostics_kube.client.cluster_options import ClusterOptions


names_argument = click.argument("name", nargs=-1, required=True, shell_complete=complete_schedules)


@click.group(epilog=examples("mldiag schedules list -A", "mldiag schedules create nightly --cron '30 2 * * *'"))
def schedules() -> None:
    """List, show, create, suspend, resume and delete automatic captures of a cluster.

    A schedule (MLDiagnosticsSchedule, mlds) captures runs by time, and when a trigger fires, within budgets.
    """


@schedules.command("list", epilog=examples("mldiag schedules list", "mldiag schedules list -A -o json"))
@cluster_options(all_namespaces=True)
@output_option()
def _list(*, cluster: ClusterOptions, output: OutputFormat) -> None:
    """List schedules."""
    from mldiagnostics_cli.schedules.requests import list_all
    from mldiagnostics_cli.schedules.showing import show_schedules

    found, place = list_all(cluster)
    show_schedules(found, output, place=place)


@schedules.command("get", epilog=examples("mldiag schedules get nightly -n ml"))
@click.argument("name", shell_complete=complete_schedules)
@cluster_options()
@output_option()
def _get(*, name: str, cluster: ClusterOptions, output: OutputFormat) -> None:
    """Show one schedule: state, next slot, captures of the last 24 hours, and refusals."""
    from mldiagnostics_cli.schedules.requests import read
    from mldiagnostics_cli.schedules.showing import show_schedule

    show_schedule(read(cluster, name), output)


@schedules.command(
    "create",
    epilog=examples(
        "mldiag schedules create often --every 6h --trigger StepTimeRise --trigger Hanging",
        "mldiag schedules create nightly --cron '30 2 * * *' --time-zone Europe/Berlin --workload jobset/trainer",
        "mldiag schedules create pulses --every 10m --pulse",
        "mldiag schedules create slow --trigger StepTimeRise=20 --label diagon.gke.io/run-group=llm --dry-run -o yaml",
    ),
)
@click.argument("name")
@click.option("--every", metavar="PERIOD", help="Capture each run in this period: 10m, 6h, 1d.")
@cron_option
@time_zone_option
@click.option(
    "--jitter", type=click.IntRange(min=0), metavar="SECONDS", help="Spread the captures of a slot over this."
)
@trigger_option
@click.option("--run", metavar="NAME", help="Only this run (MLRun); default: all runs of the namespace.")
@click.option("--workload", metavar="KIND/NAME", help="Only runs of this workload.")
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="Only runs with this label; may be repeated."
)
@click.option("--duration-ms", type=click.IntRange(min=1), metavar="N", help="Duration of a capture; default: 2000.")
@click.option("--ranks", metavar="RANKS", help="Only these ranks, such as 0,4-7.")
@click.option(
    "--pulse",
    is_flag=True,
    help="Record seven steps for the diagnosis; keep the traces of the hosts that it names and of one other.",
)
@click.option(
    "--max-per-run",
    type=click.IntRange(min=0),
    metavar="N",
    help="Captures of a run in 24 hours; default: 8, of pulses 160.",
)
@click.option(
    "--max-per-day", type=click.IntRange(min=0), metavar="N", help="Captures in 24 hours; default: 50, of pulses 500."
)
@click.option(
    "--interval",
    type=click.IntRange(min=0),
    metavar="SECONDS",
    help="Least time between captures of a run; default: 300.",
)
@click.option("--dry-run", is_flag=True, help="Only let the API server check it.")
@cluster_options()
@output_option()
def _create(
    *,
    name: str,
    every: str | None,
    cron: str | None,
    time_zone: str | None,
    jitter: int | None,
    triggers: tuple[str, ...],
    run: str | None,
    workload: str | None,
    labels: tuple[str, ...],
    duration_ms: int | None,
    ranks: str | None,
    pulse: bool,
    max_per_run: int | None,
    max_per_day: int | None,
    interval: int | None,
    dry_run: bool,
    cluster: ClusterOptions,
    output: OutputFormat,
) -> None:
    """Create a schedule."""
    from mldiagnostics_cli.output import note
    from mldiagnostics_cli.schedules.manifest import ScheduleArguments, manifest
    from mldiagnostics_cli.schedules.requests import create
    from mldiagnostics_cli.schedules.showing import show_schedules

    arguments = ScheduleArguments(
        name=name,
        every=every,
        cron=cron,
        time_zone=time_zone,
        jitter_s=jitter,
        triggers=triggers,
        run=run,
        workload=workload,
        labels=labels,
        duration_ms=duration_ms,
        ranks=ranks,
        pulse=pulse or None,
        per_run=max_per_run,
        per_day=max_per_day,
        interval_s=interval,
    )
    made = create(cluster, manifest(arguments), dry_run=dry_run)
    show_schedules([made], output, place="")
    if dry_run:
        note("Nothing was created: --dry-run.")


@schedules.command("suspend", epilog=examples("mldiag schedules suspend nightly"))
@names_argument
@cluster_options()
@output_option()
def _suspend(*, name: tuple[str, ...], cluster: ClusterOptions, output: OutputFormat) -> None:
    """Make no captures until the schedule is resumed; slots in between are not made up."""
    from mldiagnostics_cli.schedules.requests import set_suspended
    from mldiagnostics_cli.schedules.showing import show_schedules

    show_schedules(set_suspended(cluster, name, suspended=True), output, place="")


@schedules.command("resume", epilog=examples("mldiag schedules resume nightly"))
@names_argument
@cluster_options()
@output_option()
def _resume(*, name: tuple[str, ...], cluster: ClusterOptions, output: OutputFormat) -> None:
    """Make captures again, from the next slot on."""
    from mldiagnostics_cli.schedules.requests import set_suspended
    from mldiagnostics_cli.schedules.showing import show_schedules

    show_schedules(set_suspended(cluster, name, suspended=False), output, place="")


@schedules.command("delete", epilog=examples("mldiag schedules delete nightly"))
@names_argument
@cluster_options()
@output_option()
def _delete(*, name: tuple[str, ...], cluster: ClusterOptions, output: OutputFormat) -> None:
    """Delete schedules, and the objects of their captures; the profiles are kept."""
    from mldiagnostics_cli.schedules.requests import delete
    from mldiagnostics_cli.schedules.showing import show_schedules

    show_schedules(delete(cluster, name), output, place="")
