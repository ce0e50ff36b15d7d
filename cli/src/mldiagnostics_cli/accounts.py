"""`mldiag goodput`: reports of runs and logs as tables, JSON, YAML or a page."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.goodput.load_reports import ReportQuery, read, read_exclusions
from mldiagnostics.goodput.location import CLOUD_LOGGING
from mldiagnostics.goodput.report import as_json

from mldiagnostics_cli.output import as_text, has_colour, show, terminal_width
from mldiagnostics_cli.sources import find

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView

__all__ = ["AccountOptions", "show_accounts"]

COMMAND = "mldiag goodput"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOptions:
    """Options of the reports; moments are microseconds of POSIX time."""

    run: str | None
    all_runs: bool
    windows: tuple[float, ...]
    exclude_files: tuple[str, ...]
    intervals: tuple[tuple[int, int], ...]
    now: int | None
    devices: float | None
    created: int | None
    ideal_step_time: float | None
    out: str | None

    def query(self) -> ReportQuery:
        """Return the query of each log. Raises `ConfigurationError` for a file of exclusions that cannot be read."""
        return ReportQuery(
            now=time.time_ns() // 1000 if self.now is None else self.now,
            run=self.run,
            all_runs=self.all_runs,
            windows_s=self.windows,
            exclude=[interval for file in self.exclude_files for interval in read_exclusions(file)] + [*self.intervals],
            devices=self.devices,
            created=self.created,
            ideal_step_time_s=self.ideal_step_time,
            command=COMMAND,
        )


def show_accounts(
    storage: str, sources: Sequence[str], options: AccountOptions, *, job: str | None, logger: str | None, output: str
) -> None:
    """Print the goodput of runs and logs, or write it to a file.

    Raises:
        ConfigurationError: A source is neither a run nor a log, or the file cannot be written.
        LogUnreadable: A log is missing or cannot be read.
    """
    if not sources and job is None:
        raise ConfigurationError(f"{COMMAND}: no run is given; give RUN, the path or URL of a log, or --job")
    logs = [_log_of(storage, source) for source in sources]
    reports = read(logs, options.query(), job=job, logger=logger)
    text = _text(reports, output, to_file=options.out is not None)
    if options.out is None:
        show(text)
        return
    try:
        Path(options.out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"--out {options.out}: cannot be written: {error.strerror}; choose another file"
        ) from error


def _log_of(storage: str, source: str) -> str:
    """Return the log that a source names: itself, or the directory of a run."""
    if "/" in source or source.startswith(CLOUD_LOGGING) or Path(source).exists():
        return source
    return find(storage, source).directory


def _text(reports: Sequence[tuple[GoodputReport, RunView]], output: str, *, to_file: bool) -> str:
    if output in {"json", "yaml"}:
        return as_text([as_json(report) for report, _ in reports], output)
    if output == "html":
        from mldiagnostics.goodput.render.page import page  # noqa: PLC0415 - only the requested output

        return page(reports)
    from mldiagnostics.goodput.render.comparison import comparison_table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.render.table import table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.report.legible import printable_report  # noqa: PLC0415 - only the requested output

    shown = [printable_report(report) for report, _ in reports]
    width = 80 if to_file else terminal_width()
    if len(shown) > 1:
        return comparison_table(shown, width=width)
    return table(shown[0], width=width, colour=has_colour() and not to_file)
