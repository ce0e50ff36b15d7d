"""`mldiag goodput`: reports of runs and logs as tables, JSON, YAML or a page."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics.errors import ConfigurationError, LogMissing
from mldiagnostics.goodput.load_reports import INDEPENDENT, ReportQuery, read
from mldiagnostics.goodput.location import CLOUD_LOGGING
from mldiagnostics.goodput.options import exclusions
from mldiagnostics.goodput.report import as_json
from mldiagnostics.runs.run_goodput import goodput_log
from mldiagnostics.runs.waiting import waiting_files
from mldiagnostics.text.file_errors import file_problem

from mldiagnostics_cli.output import as_text, has_colour, note, show, terminal_width
from mldiagnostics_cli.runs.opening import open_source
from mldiagnostics_cli.sources import is_workload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView

    from mldiagnostics_cli.commands.source_options import SourceChoice


COMMAND = "mldiag goodput"


class _Account(NamedTuple):
    """The report of a log; the title names its run, where a run was meant."""

    report: GoodputReport
    view: RunView
    title: str

    @property
    def titled(self) -> GoodputReport:
        return replace(self.report, name=self.title)


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
        """Return the query of each log.

        Raises `ConfigurationError` for a file of exclusions that cannot be read.
        """
        files = [interval for file in self.exclude_files for interval in _read_exclusions(file)]
        return ReportQuery(
            now=time.time_ns() // 1000 if self.now is None else self.now,
            run=self.run,
            all_runs=self.all_runs,
            windows_s=self.windows,
            exclude=[*files, *self.intervals],
            devices=self.devices,
            created=self.created,
            ideal_step_time_s=self.ideal_step_time,
            command=COMMAND,
        )


def show_accounts(
    choice: SourceChoice,
    references: Sequence[str],
    options: AccountOptions,
    *,
    job: str | None,
    logger: str | None,
    output: str,
) -> None:
    """Print the goodput of runs and logs, or write it to a file.

    Raises:
        ConfigurationError: A reference is neither a run nor a log, or the file cannot be written.
        ClusterFailure: The cluster rejects it.
        LogUnreadable: A log is missing or cannot be read.
    """
    reports = _reports(choice, references, options.query(), job=job, logger=logger)
    text = _text(reports, output, to_file=options.out is not None)
    if options.out is None:
        show(text, replace="xmlcharrefreplace" if output == "html" else None)
        return
    try:
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text(text, encoding="utf-8")
    except OSError as error:
        problem = file_problem(error, "choose another file")
        raise ConfigurationError(f"--out {options.out}: cannot be written: {problem}") from error


def _read_exclusions(file: str) -> list[tuple[int, int]]:
    """Return the intervals of a file. Raises `ConfigurationError`."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")  # files of other systems may begin with a mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"--exclude {file}: cannot be read: {error}; pass a JSON file") from error
    return exclusions(text, file)


def _reports(
    choice: SourceChoice, references: Sequence[str], query: ReportQuery, *, job: str | None, logger: str | None
) -> list[_Account]:
    """Return the reports of logs and runs, in the order of the command line."""
    if not references:
        return _of_logs(read([], query, job=job, logger=logger))
    found: list[_Account] = []
    with ExitStack() as stack:
        runs = [each for each in references if not _is_log(each)]
        source = stack.enter_context(open_source(choice, runs)) if runs else None
        for reference in references:
            if source is None or _is_log(reference):
                found += _of_logs(read([reference], query, job=job, logger=logger))
                continue
            run = source.find(reference)
            if run.is_independent:  # no file is needed to know that
                raise LogMissing(f"{run.name or run.run_id}: {INDEPENDENT}")
            if waiting := waiting_files(run) if run.document else "":
                note(f"{run.name or run.run_id}: {waiting}")
            with source.fetched(run) as row:
                reports = read([goodput_log(row)], replace(query, row=row), job=job, logger=logger)
            is_copy = row.directory != run.directory
            for report, view in reports:
                name = run.name if is_copy else report.name
                named = replace(report, name=name, job=report.job or run.name)
                found.append(_Account(named, view, run.name or report.name))
    return found


def _of_logs(reports: Sequence[tuple[GoodputReport, RunView]]) -> list[_Account]:
    return [_Account(report, view, report.name) for report, view in reports]


def _is_log(reference: str) -> bool:
    has_path = "/" in reference and not is_workload(reference)
    return has_path or reference.startswith(CLOUD_LOGGING) or Path(reference).exists()


def _text(accounts: Sequence[_Account], output: str, *, to_file: bool) -> str:
    if output in {"json", "yaml"}:
        return as_text([as_json(account.report) for account in accounts], output)
    if output == "html":
        from mldiagnostics.goodput.render.page import page  # noqa: PLC0415 - only the requested output

        return page([(account.titled, account.view) for account in accounts])
    from mldiagnostics.goodput.render.comparison import comparison_table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.render.table import table  # noqa: PLC0415 - only the requested output
    from mldiagnostics.goodput.report.legible import printable_report  # noqa: PLC0415 - only the requested output

    shown = [printable_report(account.titled) for account in accounts]
    width = 80 if to_file else terminal_width()
    if len(shown) > 1:
        return comparison_table(shown, width=width)
    return table(shown[0], width=width, colour=has_colour() and not to_file)
