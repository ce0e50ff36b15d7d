"""`mldiag mltrace`: the flags of Google's `mltrace` with their defaults."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.options import OutputFormat, examples, parse_moment, parsed
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.commands.trace import HOUR_US

if TYPE_CHECKING:
    from mldiagnostics_cli.trace.cloud_logging import JobLogs


@click.command(
    epilog=examples(
        "mldiag mltrace -f cloud-logging.json -j trainer -p my-project",
        "mldiag mltrace -j trainer -p my-project -s 2026-11-21T10:00:00.0+00:00 -o incident",
    )
)
@click.option("-f", "--filename", metavar="FILE", help="Export of Cloud Logging; by default the logs of the project.")
@click.option("-j", "--jobname", required=True, metavar="NAME", help="Name of the JobSet.")
@click.option("-p", "--project_id", required=True, metavar="PROJECT", help="Google Cloud project; unused with -f.")
@click.option("-s", "--start_time", metavar="TIME", callback=parsed(parse_moment), help="Default: 1 h before the end.")
@click.option("-e", "--end_time", metavar="TIME", callback=parsed(parse_moment), help="Default: now.")
@click.option("-l", "--log_filter", default="", metavar="FILTER", help="Filter of Cloud Logging for further terms.")
@click.option("-o", "--output_filename", metavar="FILE", help="Page of the trace, without .html.")
@click.option("--loglevel", metavar="LEVEL", expose_value=False, help="Accepted, without an effect.")
def mltrace(
    *,
    filename: str | None,
    jobname: str,
    project_id: str,
    start_time: int | None,
    end_time: int | None,
    log_filter: str,
    output_filename: str | None,
) -> None:
    """Run mltrace with its flags: a trace of a job's logs, from an export or from Cloud Logging.

    `mldiag trace` takes other logs and runs too.
    """
    from mldiagnostics_cli.trace.export import TraceOptions, show_trace, write_trace

    source: str | JobLogs
    if filename is None:
        from mldiagnostics_cli.trace.cloud_logging import JobLogs

        end = int(time.time() * 1e6) if end_time is None else end_time
        start = end - HOUR_US if start_time is None else start_time
        source = JobLogs(project=project_id, job=jobname, start=start, end=end, wanted=log_filter)
    else:
        source = filename
    stem = output_filename or filename or jobname
    options = TraceOptions(job=jobname, start=start_time, end=end_time)
    show_trace(write_trace(SourceChoice(), [source], options, out=f"{stem}.html"), OutputFormat.TABLE)
