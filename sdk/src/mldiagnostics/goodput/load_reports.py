"""Logs read once, for people: each one's runs with their reports."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, LogMissing, LogUnreadable
from mldiagnostics.goodput.history import History
from mldiagnostics.goodput.location import CACHE_DIR, CLOUD_LOGGING
from mldiagnostics.goodput.log import absolute, open_log
from mldiagnostics.goodput.log.nearby_logs import below
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.log.snapshot import snapshot_path
from mldiagnostics.goodput.options import exclusions
from mldiagnostics.goodput.render.words import moment
from mldiagnostics.goodput.report import make_report
from mldiagnostics.goodput.stored_history import StoredHistory
from mldiagnostics.runs import run_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.goodput.history import Run
    from mldiagnostics.goodput.log import Log
    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView

__all__ = ["ReportQuery", "read", "read_exclusions"]


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """What is wanted of each log. Moments are microseconds of POSIX time."""

    now: int
    run: str | None = None
    all_runs: bool = False
    windows_s: Sequence[float] = ()
    exclude: Sequence[tuple[int, int]] = ()
    devices: float | None = None
    created: int | None = None
    ideal_step_time_s: float | None = None


def read(
    logs: Sequence[str], asked: ReportQuery, *, job: str | None = None, logger: str | None = None
) -> list[tuple[GoodputReport, RunView]]:
    """Return the runs wanted of all logs, those of one log from old to new, each with what its report was made from.

    `logs` mean what `log=` means for a recorder of `job` and `logger`; without one, it is the log of these names.
    Raises `ConfigurationError`, `LogUnreadable`, `MissingExtraError`.
    """
    if job is None and not logs:
        raise ConfigurationError("nothing to read: give the path or URL of a log, or --job and --logger")
    if job is not None:
        logger = f"goodput_{job}" if logger is None else logger
        logs = [search_log(job, logger, log) for log in logs] or [search_log(job, logger)]
    return [run for log in logs for run in _runs(log, job, asked)]


def _runs(url: str, job: str | None, asked: ReportQuery) -> Iterator[tuple[GoodputReport, RunView]]:
    log = open_log(url, job_name=job)
    try:
        history = StoredHistory(log, snapshot_path(_cache_dir(), log, job_name=job or "")).read(asked.now / 1e6)
    except LogMissing as error:
        raise LogMissing(below(url) or str(error)) from error
    if len(log.jobs) > 1:
        raise ConfigurationError(f"{log.name} tells of several jobs, give --job: {', '.join(sorted(log.jobs))}")
    known = history.runs(asked.now)
    first = history.of(asked.now).first_event
    if first is None:
        raise LogUnreadable(_no_event(log, url, job, sum(history.ignored.values())))
    if first > asked.now:
        begin, now = (f"{moment(each / 1e6)} UTC" for each in (first, asked.now))
        raise LogUnreadable(f"{log.name} begins at {begin}, after {now}: ask for a later --now, or compare the clocks")
    wanted = known if asked.all_runs else [_one(known, asked.run, log.name) if asked.run else known[-1]]
    for run in wanted:
        view = history.of(asked.now, run)
        until, stopped = _until(view, url, asked.now) if run == known[-1] else (asked.now, "")
        report = make_report(
            view,
            now=until,
            windows_s=asked.windows_s,
            exclude=asked.exclude,
            devices=asked.devices,
            created=asked.created,
            ideal_step_time_s=asked.ideal_step_time_s,
            name=log.name,
            job=job or next(iter(log.jobs), ""),
            run=run,
            runs=known,
        )
        ignored = Counter(report.ignored) + history.ignored  # lines that are no events are no run's
        corrected = dict(history.corrected.most_common())
        yield replace(report, ignored=dict(ignored.most_common()), corrected=corrected, stopped=stopped), view


def _until(run: Run, log: str, now: int) -> tuple[int, str]:
    """Return until when the account of a run goes, and why no further: it failed, or fell silent, without a job end.

    The run's own record knows that, in a log that is the directory of a run. An event after the last heartbeat counts.
    """
    if log.startswith(CLOUD_LOGGING) or run.ended(now) is not None:
        return now, ""
    row = run_at(absolute(log), now=now / 1e6)
    if row is None or row.phase == "Active" or row.ended is None:
        return now, ""
    last = max(round(row.ended * 1e6), (run.last_event(now) or 0) + 1)  # the account takes what was before its end
    reason = ": ".join(part for part in (row.reason or row.phase, row.message) if part)
    return (last, reason) if last < now else (now, "")


def _cache_dir() -> str:
    """Return where snapshots are kept: as the environment says, else where calculators keep theirs."""
    return os.environ.get(CACHE_DIR) or "/tmp"  # noqa: S108 - the peer's default


def _no_event(log: Log, url: str, job: str | None, ignored: int) -> str:
    """Return what to say of a log that has nothing to tell."""
    garbage = f", and {ignored} lines cannot be meant" if ignored else ""
    if job is None:
        return f"{log.name} tells of no event{garbage}: is it the log of a job?"
    every = open_log(url)
    every.read_new(History(), datetime.now(timezone.utc))
    jobs = f"its jobs are: {', '.join(sorted(every.jobs))}" if every.jobs else "it may be the log of another job"
    return f"--job {job}: {log.name} tells of no event of this job{garbage}; {jobs}"


def _one(known: Sequence[str], wanted: str, name: str) -> str:
    """Return the run whose id is `wanted` or, of all, begins with it."""
    found = [wanted] if wanted in known else [run for run in known if run.startswith(wanted)]
    if len(found) != 1:
        several = f"{len(found)} runs that begin with" if found else "no run"
        raise ConfigurationError(f"{name} has {several} {wanted!r}; its runs are: {', '.join(known)}")
    return found[0]


def read_exclusions(file: str) -> list[tuple[int, int]]:
    """Return the stretches that a file of the peer's form names. Raises `ConfigurationError`."""
    try:
        text = Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from error
    return exclusions(text, file)
