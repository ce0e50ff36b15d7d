"""Goodput of one run, out of its events."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING

from mldiagnostics.errors import LogMissing, LogUnreadable, StoreError
from mldiagnostics.layout import REPORTED_DIR
from mldiagnostics.runs.record_files import record_files
from mldiagnostics.runs.row import directory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.model import TimeBreakdown
    from mldiagnostics.goodput.report.view import RunView
    from mldiagnostics.runs.record_files import RecordFile
    from mldiagnostics.runs.row import RunRow


def goodput(run: RunRow | str, *, now: float | None = None, windows_s: Sequence[float] = ()) -> GoodputReport | None:
    """Return where the time of a run went, over all its attempts.

    All files of records are read, about 40 MB/s; what takes longer than a second is kept below `ML_GOODPUT_CACHE_DIR`
    (or `/tmp`), and only new lines are read the next time.

    Args:
        run: A row, or the directory of a run: a path or URL.
        now: As of when, in Unix seconds; by default now. The account of a run that ended or fell silent ends there.
        windows_s: Lengths of sliding windows up to that moment, in seconds, which the report has besides.

    Returns:
        The report; shares from 0 to 1, times in seconds. None for a run without events of goodput until `now`.

    Raises:
        LogUnreadable: The files cannot be read.

    Example:
        report = goodput(run)
        print(report.cumulative.goodput, report.cumulative.unproductive_s)
    """
    read = _read(run, now, windows_s)
    return None if read is None else read[0]


def step_times(run: RunRow | str, *, now: float | None = None) -> list[float]:
    """Return the durations of the steps of a run, in seconds, by step.

    These are steps that survive (not repeated after a restart) and that another step of their attempt follows, without
    events inside them such as an evaluation. Empty for a run without events of goodput; otherwise as `goodput`.
    """
    read = _read(run, now, ())
    if read is None:
        return []
    report, view = read
    return [spent / 1e6 for spent in view.step_times(round(report.now * 1e6)).durations]


def goodput_over_time(
    run: RunRow | str, *, parts: int, now: float | None = None, windows_s: Sequence[float] = ()
) -> tuple[GoodputReport, list[TimeBreakdown]] | None:
    """Return the report of a run, and its time in equal parts, the oldest first.

    The parts add up to `cumulative` of the report.

    Args:
        run: A row, or the directory of a run: a path or URL.
        parts: How many parts.
        now: As for `goodput`.
        windows_s: As for `goodput`.

    Raises:
        LogUnreadable: The files cannot be read.
    """
    from mldiagnostics.goodput.report.build import breakdown  # noqa: PLC0415 - the ledger is large

    read = _read(run, now, windows_s)
    if read is None:
        return None
    report, view = read
    moment = round(report.now * 1e6)
    start, end = (round(each * 1e6) for each in (report.cumulative.start, report.cumulative.end))
    bounds = [start + (end - start) * part // parts for part in range(parts + 1)]
    return report, [breakdown(view.account(moment, start=left, end=right)) for left, right in pairwise(bounds)]


def with_goodput(row: RunRow, *, now: float | None = None, most_bytes: int | None = None) -> RunRow:
    """Return the row with its goodput, at the cost of `goodput`.

    It stays None for a run without events of goodput. Raises `LogUnreadable` as `goodput` does.

    Args:
        row: The run.
        now: As for `goodput`.
        most_bytes: A run with more bytes of records keeps its goodput as it is; None for no limit.
    """
    if most_bytes is not None and sum(file.size for file in _record_files(row.directory)) > most_bytes:
        return row
    report = goodput(row, now=now)
    return row if report is None else replace(row, goodput=report.cumulative.goodput, goodput_as_of=None)


def goodput_log(run: RunRow | str) -> str:
    """Return the goodput log of a run.

    It is its own records if they have all processes whose events were reported to the control plane; else the reported
    ones: only the process that leads reports events, and its own records may be lost. Raises `LogUnreadable`.
    """
    log, _ = _log_and_processes(run)
    return log


def _log_and_processes(run: RunRow | str) -> tuple[str, frozenset[str]]:
    """Return the goodput log of a run, and the incarnations of the processes in it."""
    directory = directory_of(run)
    reported = f"{directory}/{REPORTED_DIR}"
    own, of_reports = _recording(directory), _recording(reported)
    return (directory, own) if of_reports <= own else (reported, of_reports)


def _recording(directory: str) -> frozenset[str]:
    """Return the incarnations of the processes whose records are below a directory."""
    return frozenset(file.segment.incarnation for file in _record_files(directory))


def _record_files(directory: str) -> list[RecordFile]:
    """Return the files of records below a directory. Raises `LogUnreadable`."""
    try:
        return record_files(directory).list()
    except StoreError as error:
        raise LogUnreadable(f"{directory}: cannot read the goodput log: {error}") from error


def _read(run: RunRow | str, now: float | None, windows_s: Sequence[float]) -> tuple[GoodputReport, RunView] | None:
    from mldiagnostics.goodput.load_reports import ReportQuery, read  # noqa: PLC0415 - the ledger is large

    moment = round((time.time() if now is None else now) * 1e6)
    query = ReportQuery(now=moment, windows_s=windows_s, row=None if isinstance(run, str) else run)
    log, processes = _log_and_processes(run)
    if not processes:  # most runs of a long list; a search for the log would describe others nearby
        return None
    try:
        [newest] = read([log], query)
    except LogMissing:
        return None
    except LogUnreadable:
        if _has_events(log, query.now):  # those of a clock that is ahead of this one come later
            raise
        return None
    return newest


def _has_events(directory: str, now: int) -> bool:
    from mldiagnostics.goodput.ledger.history import History  # noqa: PLC0415 - as above
    from mldiagnostics.goodput.log import open_log  # noqa: PLC0415 - as above

    history = History()
    open_log(directory).read_new(history, datetime.fromtimestamp(now / 1e6, timezone.utc))
    first = history.of(now).first_event
    return first is not None and first <= now
