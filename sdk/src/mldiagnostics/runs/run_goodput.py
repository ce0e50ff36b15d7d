"""Goodput of one run, out of its events."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mldiagnostics.errors import LogMissing, LogUnreadable
from mldiagnostics.runs.row import directory_of

if TYPE_CHECKING:
    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.runs.row import RunRow

__all__ = ["goodput", "with_goodput"]


def goodput(run: RunRow | str, *, now: float | None = None) -> GoodputReport | None:
    """Return where the time of a run went, over all its attempts.

    All files of records are read, about 40 MB/s; what takes longer than a second is kept below `ML_GOODPUT_CACHE_DIR`
    (or `/tmp`), and only new lines are read the next time.

    Args:
        run: A row, or the directory of a run: a path or URL.
        now: As of when, in Unix seconds; by default now. The account of a run that ended or fell silent ends there.

    Returns:
        The report; shares from 0 to 1, times in seconds. None for a run without events of goodput.

    Raises:
        LogUnreadable: The files cannot be read.

    Example:
        report = goodput(run)
        print(report.cumulative.goodput, report.cumulative.unproductive_s)
    """
    from mldiagnostics.goodput.load_reports import ReportQuery, read  # noqa: PLC0415 - the ledger is large

    query = ReportQuery(now=round((time.time() if now is None else now) * 1e6))
    try:
        [(report, _)] = read([directory_of(run)], query)
    except LogMissing:
        return None
    except LogUnreadable:
        if _has_events(directory_of(run), query.now):
            raise
        return None
    return report


def with_goodput(row: RunRow, *, now: float | None = None) -> RunRow:
    """Return the row with its goodput, at the cost of `goodput`.

    It stays None for a run without events of goodput. Raises `LogUnreadable` as `goodput` does.
    """
    report = goodput(row, now=now)
    return row if report is None else replace(row, goodput=report.cumulative.goodput)


def _has_events(directory: str, now: int) -> bool:
    from mldiagnostics.goodput.history import History  # noqa: PLC0415 - as above
    from mldiagnostics.goodput.log import open_log  # noqa: PLC0415 - as above

    history = History()
    open_log(directory).read_new(history, datetime.fromtimestamp(now / 1e6, timezone.utc))
    return history.of(now).first_event is not None
