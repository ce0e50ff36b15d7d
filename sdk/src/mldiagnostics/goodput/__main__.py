"""Command line: goodput and badput of jobs, from their logs.

python -m mldiagnostics.goodput LOG...                 a table for each log, or one for several side by side
python -m mldiagnostics.goodput --job NAME --logger L  the log that a recorder with these names writes here
python -m mldiagnostics.goodput LOG -o html --out goodput.html
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, LogMissing, MLDiagnosticsError
from mldiagnostics.goodput import options
from mldiagnostics.goodput.load_reports import ReportQuery, read, read_exclusions
from mldiagnostics.goodput.render.words import encodable
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView

_NEWLINE = "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mldiagnostics.goodput", description="Show where the time of jobs went."
    )
    parser.add_argument("log", nargs="*", help="directory, file or URL (gs://…, cloud-logging:…) of a log, or of a run")
    parser.add_argument(
        "--job", help="name of the job: without LOG, its log is read; with LOG, one of several jobs in it"
    )
    parser.add_argument("--logger", help="name of the log, as given to the recorder (default: goodput_<job>)")
    parser.add_argument("--run", help="run of the log (default: the newest)")
    parser.add_argument("--all-runs", action="store_true", help="all runs of the log, side by side")
    parser.add_argument("--window", action="append", default=[], metavar="1h", help="also the last 45s, 30m, 1h, 7d")
    parser.add_argument(
        "--exclude", action="append", default=[], metavar="FILE", help="JSON list of intervals to exclude"
    )
    parser.add_argument(
        "--exclude-interval",
        action="append",
        default=[],
        nargs=2,
        metavar=("START", "END"),
        help="one interval to exclude",
    )
    parser.add_argument(
        "--now", metavar="TIME", help="moment of the report: 2026-11-21T10:00:00Z, or seconds since 1970"
    )
    parser.add_argument("--devices", metavar="N", help="number of all devices, for device-hours")
    parser.add_argument("--created", metavar="TIME", help="when the job was requested, for figures with queueing")
    parser.add_argument("--ideal-step-time", metavar="S", help="seconds, instead of the value computed from the steps")
    parser.add_argument("-o", "--output", choices=("table", "json", "html"), default="table")
    parser.add_argument("--out", metavar="FILE", help="write there instead of to standard output")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report; exit with 2 for invalid arguments and 1 for unreadable logs."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        runs = read(given.log, _query(given), job=given.job, logger=given.logger)
        shown = _shown(runs, given.output, to_file=bool(given.out))
        if given.out:
            _write(shown, given.out)
        else:
            _print(shown, given.output)
    except ConfigurationError as error:
        parser.exit(2, f"{parser.prog}: {printable(str(error))}\n")
    except LogMissing as error:  # it can list other logs, one per line
        parser.exit(1, f"{parser.prog}: {printable(str(error), keep=_NEWLINE)}\n")
    except MLDiagnosticsError as error:
        parser.exit(1, f"{parser.prog}: {printable(str(error))}\n")


def _query(given: argparse.Namespace) -> ReportQuery:
    return ReportQuery(
        now=options.moment(given.now) if given.now else time.time_ns() // 1000,
        run=given.run,
        all_runs=given.all_runs,
        windows_s=[options.window(text) for text in given.window],
        exclude=[interval for file in given.exclude for interval in read_exclusions(file)]
        + [options.interval(*ends) for ends in given.exclude_interval],
        devices=options.positive(given.devices) if given.devices else None,
        created=options.moment(given.created) if given.created else None,
        ideal_step_time_s=options.positive(given.ideal_step_time) if given.ideal_step_time else None,
    )


def _shown(runs: Sequence[tuple[GoodputReport, RunView]], output: str, *, to_file: bool) -> str:
    reports = [report for report, _ in runs]
    if output == "json":
        from mldiagnostics.goodput.report import as_json  # noqa: PLC0415 - only the requested output

        return "".join(json.dumps(as_json(report), allow_nan=False) + "\n" for report in reports)
    if output == "html":
        from mldiagnostics.goodput.render.page import page  # noqa: PLC0415 - only the requested output

        return page(runs)
    from mldiagnostics.goodput.render.comparison import comparison_table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.render.table import table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.report.legible import printable_report  # noqa: PLC0415 - only the requested output

    terminal = not to_file and sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 80
    colour = terminal and not os.environ.get("NO_COLOR")
    shown = [printable_report(report) for report in reports]
    return comparison_table(shown, width=width) if len(shown) > 1 else table(shown[0], width=width, colour=colour)


def _print(text: str, output: str) -> None:
    if sys.stdout is None:
        raise ConfigurationError("no standard output: give a file with --out")
    encoding = sys.stdout.encoding or "utf-8"
    if output == "html":
        shown = text.encode(encoding, "xmlcharrefreplace").decode(encoding)
    else:
        shown = encodable(text, encoding)
    try:
        sys.stdout.write(shown)
        sys.stdout.flush()
    except OSError as error:  # the interpreter's own flush must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # else the reader has stopped reading
            raise ConfigurationError(f"standard output: cannot be written: {error}") from error


def _write(text: str, file: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"--out {file}: cannot be written: {error}") from error


if __name__ == "__main__":
    main()
