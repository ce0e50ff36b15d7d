"""Plain summary of the time of a job, for containers that have no `mldiag`.

python -m mldiagnostics.goodput LOG                     a table of the newest run in a log
python -m mldiagnostics.goodput LOG --run ID -o json    one run as a line of JSON
python -m mldiagnostics.goodput --job NAME --logger L   the log that a recorder with these names writes here
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, LogMissing, MLDiagnosticsError
from mldiagnostics.goodput import options
from mldiagnostics.goodput.load_reports import ReportQuery, read
from mldiagnostics.standard_output import write_text
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport

_NEWLINE = "\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mldiagnostics.goodput",
        description="Show where the time of a run went.",
        epilog="For windows, exclusions, several runs, disruptions by phase and an HTML page: mldiag goodput "
        "(pip install mldiagnostics-cli).",
    )
    parser.add_argument("log", nargs="?", help="directory, file or URL (gs://…, cloud-logging:…) of a log, or of a run")
    parser.add_argument(
        "--job", help="name of the job: without LOG, its log is read; with LOG, one of several jobs in it"
    )
    parser.add_argument("--logger", help="name of the log, as given to the recorder (default: goodput_<job>)")
    parser.add_argument("--run", help="run of the log, or the beginning of its id (default: the newest)")
    parser.add_argument(
        "--now", metavar="TIME", help="moment of the report: 2026-11-21T10:00:00Z, or seconds since 1970"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the report; exit with 2 for invalid arguments and 1 for unreadable logs."""
    parser = _parser()
    given = parser.parse_args(arguments)
    try:
        now = options.moment(given.now) if given.now else time.time_ns() // 1000
        logs = [given.log] if given.log else []
        [(report, _)] = read(logs, ReportQuery(now=now, run=given.run), job=given.job, logger=given.logger)
        write_text(_text(report, given.output))
    except ConfigurationError as error:
        parser.exit(2, f"{parser.prog}: {printable(str(error))}\n")
    except LogMissing as error:  # it can list other logs, one per line
        parser.exit(1, f"{parser.prog}: {printable(str(error), keep=_NEWLINE)}\n")
    except MLDiagnosticsError as error:
        parser.exit(1, f"{parser.prog}: {printable(str(error))}\n")


def _text(report: GoodputReport, output: str) -> str:
    if output == "json":
        from mldiagnostics.goodput.report import as_json  # noqa: PLC0415 - only the requested output

        return json.dumps(as_json(report), allow_nan=False) + "\n"
    from mldiagnostics.goodput.render.table import table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.report.legible import printable_report  # noqa: PLC0415 - only the requested output

    terminal = sys.stdout is not None and sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else 80
    return table(printable_report(report), width=width, colour=terminal and not os.environ.get("NO_COLOR"))


if __name__ == "__main__":
    main()
