"""`mldiag trace`: logs and runs as a trace for Perfetto."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.completed_values import complete_sources
from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, parse_moment, parsed
from mldiagnostics_cli.commands.source_options import source_options
from mldiagnostics_cli.trace import SEVERITIES

if TYPE_CHECKING:
    from re import Pattern

    from mldiagnostics_cli.commands.source_options import SourceChoice
    from mldiagnostics_cli.trace.cloud_logging import JobLogs


HOUR_US = 3600 * 10**6


def _parse_pattern(text: str) -> Pattern[str]:
    import re

    from mldiagnostics.errors import ConfigurationError

    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigurationError(f"{text}: not a regular expression: {error}; escape its signs with \\") from error


@click.command(
    epilog=examples(
        "mldiag trace 4f6c",
        "mldiag trace trainer -n ml",
        "mldiag trace trainer.log coordinator.log.gz 4f6c --out incident.json.gz",
        "mldiag trace trainer --out incident.html",
        "mldiag trace cloud-logging.json --job trainer --severity WARNING",
        "mldiag trace cloud-logging.json --exclude 'heartbeat|health check' --exclude '^Poll'",
        "mldiag trace --project my-project --job trainer --follow --out live.html",
        "mldiag trace - --out trace.json",
        note="Pods: kubectl logs -l job-name=trainer --prefix --timestamps --tail=-1 | mldiag trace -",
    )
)
@click.argument("reference", nargs=-1, metavar="[SOURCE...]", shell_complete=complete_sources)
@source_options
@click.option(
    "--out",
    metavar="FILE|URL",
    help="File of the trace, - for standard output; by default SOURCE.trace.json.gz. One named .html is a page that "
    "opens the trace in Perfetto.",
)
@click.option("-j", "--job", metavar="NAME", help="Only entries of pods whose name is NAME or starts with NAME-.")
@click.option("--start", metavar="TIME", callback=parsed(parse_moment), help="Only entries from this time on.")
@click.option("--end", metavar="TIME", callback=parsed(parse_moment), help="Only entries before this time.")
@click.option(
    "--severity", type=click.Choice(SEVERITIES, case_sensitive=False), help="Only entries of this severity or above."
)
@click.option(
    "-x",
    "--exclude",
    "excluded",
    multiple=True,
    metavar="REGEX",
    callback=parsed(_parse_pattern),
    help="Leave out entries with a match in their message; may be repeated.",
)
@click.option(
    "-p",
    "--project",
    metavar="PROJECT",
    help="Read the logs of --job from Cloud Logging of this project too, with gcloud; by default of the last hour.",
)
@click.option(
    "-f", "--follow", is_flag=True, help="Write the trace again while its sources grow, until Ctrl-C or after --end."
)
@output_option()
def trace(
    *,
    reference: tuple[str, ...],
    source: SourceChoice,
    out: str | None,
    job: str | None,
    start: int | None,
    end: int | None,
    severity: str | None,
    excluded: tuple[Pattern[str], ...],
    project: str | None,
    follow: bool,
    output: OutputFormat,
) -> None:
    """Write a trace for Perfetto or chrome://tracing: entries of logs, goodput, steps, captures and metrics.

    SOURCE is a log, a directory of logs, - for standard input, or a run: its id or the beginning of it, its name, its
    directory. Logs are lines of text with times, the output of kubectl logs, JSON lines, and exports of Cloud Logging
    as JSON or CSV; with gzip too, and of any size. Parts that cannot be read are counted and named.

    Runs are found as by `mldiag runs`: in the cluster if -n, -A, --context or --kubeconfig is given; else in files if
    --storage or MLDIAG_STORAGE is given, or ./mldiagnostics exists; else in the cluster of the current context.

    Each pod is a group, those of a JobSet or a LeaderWorkerSet by slice and worker, with a track for each source file
    or container; a run has tracks for its time by goodput bucket, its steps, its profiles, and a counter for each
    metric.
    """
    from mldiagnostics_cli.trace.export import STDIN, STDOUT, TraceOptions, default_out, show_trace, write_trace

    if not reference and project is None:
        raise click.UsageError("Missing argument 'SOURCE...': name a log or a run, or pass --project and --job.")
    if project is not None and job is None:
        raise click.UsageError(f"--project {project}: reads the logs of one job; name it with --job.")
    if follow and (STDIN in reference or out == STDOUT):
        raise click.UsageError("--follow: reads its sources and writes its file again; pass files instead of -.")
    options = TraceOptions(job=job, start=start, end=end, severity=severity, excluded=excluded)
    logs = None if project is None or job is None else _job_logs(project, job, start, end)
    if follow:
        from mldiagnostics_cli.trace.following import follow_trace

        path = out or default_out(reference[0] if reference else str(job))
        follow_trace(source, reference, logs, options, out=path, output=output)
        return
    sources: list[str | JobLogs] = [*reference, *([] if logs is None else [logs])]
    show_trace(write_trace(source, sources, options, out=out or (None if reference else default_out(str(job)))), output)


def _job_logs(project: str, job: str, start: int | None, end: int | None) -> JobLogs:
    import time

    from mldiagnostics_cli.trace.cloud_logging import JobLogs

    last = time.time_ns() // 1000 if end is None else end
    return JobLogs(project=project, job=job, start=last - HOUR_US if start is None else start, end=end)
