"""`mldiag goodput`: the account of the time of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mldiagnostics_cli.commands.completed_values import complete_sources
from mldiagnostics_cli.commands.options import examples, parse_moment, parsed
from mldiagnostics_cli.commands.source_options import source_options

if TYPE_CHECKING:
    from mldiagnostics_cli.commands.source_options import SourceChoice


def _parse_window(text: str) -> float:
    from mldiagnostics.goodput.options import window

    return window(text)


def _parse_positive(text: str) -> float:
    from mldiagnostics.goodput.options import positive

    return positive(text)


def _parse_interval(ends: tuple[str, str]) -> tuple[int, int]:
    from mldiagnostics.goodput.options import interval

    return interval(*ends)


@click.command(
    epilog=examples(
        "mldiag goodput 4f6c",
        "mldiag goodput 4f6c 81aa --window 1h",
        "mldiag goodput trainer -n ml",
        "mldiag goodput gs://bucket/runs/4f6c12 -o html --out goodput.html",
        "mldiag goodput --job trainer -o json",
    )
)
@click.argument("reference", nargs=-1, metavar="[SOURCE]...", shell_complete=complete_sources)
@source_options
@click.option("--job", metavar="NAME", help="Job whose log is read; with a log of several jobs, the one to show.")
@click.option("--logger", metavar="NAME", help="Name of the log, as given to the recorder; default: goodput_<job>.")
@click.option("--run", metavar="ID", help="Run of a log, or the beginning of its id; default: the newest.")
@click.option("--all-runs", is_flag=True, help="Show all runs of the logs.")
@click.option(
    "--window",
    "windows",
    multiple=True,
    metavar="1h",
    callback=parsed(_parse_window),
    help="Show the last 45s, 30m, 1h or 7d too; may be repeated.",
)
@click.option(
    "--exclude",
    "exclude_files",
    multiple=True,
    metavar="FILE",
    help="JSON list of intervals to exclude; may be repeated.",
)
@click.option(
    "--exclude-interval",
    "intervals",
    nargs=2,
    multiple=True,
    metavar="START END",
    callback=parsed(_parse_interval),
    help="Interval to exclude; may be repeated.",
)
@click.option(
    "--now",
    metavar="TIME",
    callback=parsed(parse_moment),
    help="Moment of the report: 2026-11-21T10:00:00Z, or seconds since 1970.",
)
@click.option("--devices", metavar="N", callback=parsed(_parse_positive), help="All devices, for device-hours.")
@click.option(
    "--created", metavar="TIME", callback=parsed(parse_moment), help="Request of the job, for figures with queueing."
)
@click.option(
    "--ideal-step-time",
    metavar="SECONDS",
    callback=parsed(_parse_positive),
    help="Ideal time of a step; by default computed from the steps.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "yaml", "html"]),
    default="table",
    show_default=True,
    help="Format of the report; html is one self-contained page.",
)
@click.option("--out", metavar="FILE", help="Write the report to this file.")
def goodput(
    *,
    reference: tuple[str, ...],
    source: SourceChoice,
    job: str | None,
    logger: str | None,
    output: str,
    **query: Any,
) -> None:
    """Show where the time of runs went: productive and lost time, windows, attempts and disruptions.

    SOURCE is a run (its id or the beginning of it, its name, its directory), or a goodput log: a directory, a file, or
    a URL such as s3://bucket/logs or cloud-logging:project/log. Several sources are shown side by side.

    Runs are found as by `mldiag runs`: in the cluster if -n, -A, --context or --kubeconfig is given; else in files if
    --storage or MLDIAG_STORAGE is given, or ./mldiagnostics exists; else in the cluster of the current context. A run
    whose processes keep no records is accounted by their reports to the control plane.
    """
    from mldiagnostics_cli.accounts import AccountOptions, show_accounts

    if not reference and job is None:
        raise click.UsageError(
            "no run is given; pass RUN, the path or URL of a log, or --job", click.get_current_context()
        )
    show_accounts(source, reference, AccountOptions(**query), job=job, logger=logger, output=output)
