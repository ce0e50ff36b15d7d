"""Reports of the runs in some logs, for the command line."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, LogMissing, LogUnreadable, StoreError
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.location import CACHE_DIR, CLOUD_LOGGING
from mldiagnostics.goodput.log import absolute, open_log
from mldiagnostics.goodput.log.nearby_logs import COMMAND, describe_nearby
from mldiagnostics.goodput.log.search import search_log
from mldiagnostics.goodput.render.words import moment
from mldiagnostics.goodput.report import make_report
from mldiagnostics.goodput.report.cluster_record import MAX_BYTES, NOTHING_RECORDED, ClusterRecord
from mldiagnostics.goodput.report.hang import assess
from mldiagnostics.goodput.snapshots.snapshot import snapshot_path
from mldiagnostics.goodput.snapshots.stored_history import StoredHistory
from mldiagnostics.layout import CLUSTER_RECORD, REPORTED_DIR
from mldiagnostics.runs.run_record import run_at
from mldiagnostics.store import open_store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics.goodput.ledger.history import Run
    from mldiagnostics.goodput.log import Log
    from mldiagnostics.goodput.report import GoodputReport
    from mldiagnostics.goodput.report.view import RunView
    from mldiagnostics.runs.row import RunRow


INDEPENDENT = (
    "no rank leads its processes, such as those of a Deployment, so it has no account of goodput; "
    "`mldiag runs get RUN --hosts` shows its hosts"
)


@dataclass(frozen=True, slots=True)
class ReportQuery:
    """A query of each log; moments are microseconds of POSIX time.

    `command` is the one that messages name. `row` is the newest run of the log; if it is not of a run.json but of an
    MLRun, the account ends when it says.
    """

    now: int
    run: str | None = None
    all_runs: bool = False
    windows_s: Sequence[float] = ()
    exclude: Sequence[tuple[int, int]] = ()
    devices: float | None = None
    created: int | None = None
    ideal_step_time_s: float | None = None
    command: str = COMMAND
    row: RunRow | None = None


def read(
    logs: Sequence[str], query: ReportQuery, *, job: str | None = None, logger: str | None = None
) -> list[tuple[GoodputReport, RunView]]:
    """Return the requested runs of all logs with their reports, oldest first.

    Each of `logs` is a value of `log=` for a recorder of `job` and `logger`; without one, the log of these names is
    read. Raises `ConfigurationError`, `LogUnreadable`, `MissingExtraError`.
    """
    if job is None and not logs:
        raise ConfigurationError("no log is given; pass the path or URL of a log, or --job and --logger")
    if job is not None:
        logger = f"goodput_{job}" if logger is None else logger
        logs = [search_log(job, logger, log) for log in logs] or [search_log(job, logger)]
    return [run for log in logs for run in _runs(log, job, query)]


def _runs(url: str, job: str | None, query: ReportQuery) -> Iterator[tuple[GoodputReport, RunView]]:
    log = open_log(url, job_name=job)
    try:
        history = StoredHistory(log, snapshot_path(_cache_dir(), log, job_name=job or "")).read(query.now / 1e6)
    except LogMissing as error:
        raise LogMissing(describe_nearby(url, query.command) or str(error)) from error
    if len(log.jobs) > 1:
        raise ConfigurationError(f"{log.name}: has several jobs; pass --job with one of {', '.join(sorted(log.jobs))}")
    row = _row(url, query)
    if row is not None and row.is_independent:
        raise LogMissing(f"{row.name or row.run_id}: {INDEPENDENT}")
    known = history.runs(query.now)
    first = history.of(query.now).first_event
    if first is None:
        raise LogUnreadable(_no_event(log, url, job, sum(history.ignored.values())))
    if first > query.now:
        start, now = (f"{moment(each / 1e6)} UTC" for each in (first, query.now))
        raise LogUnreadable(f"{log.name}: starts at {start}, after {now}; pass a later --now, or compare the clocks")
    cluster = recorded_by_cluster(url)
    wanted = known if query.all_runs else [_one(known, query.run, log.name) if query.run else known[-1]]
    for run in wanted:
        view = history.of(query.now, run)
        until, stopped, failure = _ending(view, row, query) if run == known[-1] else (query.now, "", "")
        report = make_report(
            view,
            now=until,
            windows_s=query.windows_s,
            exclude=query.exclude,
            devices=query.devices,
            created=query.created,
            ideal_step_time_s=query.ideal_step_time_s,
            cluster=cluster if run == known[-1] else NOTHING_RECORDED,
            name=log.name,
            job=job or next(iter(log.jobs), ""),
            run=run,
            runs=known,
        )
        ignored = Counter(report.ignored) + history.ignored  # invalid lines do not belong to a run
        corrected = dict(history.corrected.most_common())
        if stopped:
            report = replace(report, hang=assess(None, None, None))  # no step is running
        yield (
            replace(report, ignored=dict(ignored.most_common()), corrected=corrected, stopped=stopped, failure=failure),
            view,
        )


def _row(log: str, query: ReportQuery) -> RunRow | None:
    """Return the row of the run whose directory a log is.

    It is that of its MLRun, else that of its run.json, which is read again.
    """
    if query.row is not None and not query.row.document:
        return query.row
    return None if log.startswith(CLOUD_LOGGING) else run_at(absolute(log), now=query.now / 1e6)


def _ending(run: Run, row: RunRow | None, query: ReportQuery) -> tuple[int, str, str]:
    """Return the end of a run's account, and the reasons why it stopped and failed.

    A run stopped if it has no job end. An event after the last heartbeat counts.
    """
    now = query.now
    if row is None or row.phase == "Active":
        return now, "", ""
    reason = ": ".join(part for part in (row.reason or row.phase, row.message) if part)
    failure = reason if row.phase == "Failed" else ""
    if run.ended(now) is not None or (end := row.account_end) is None:
        return now, "", failure
    last = max(round(end * 1e6), (run.last_event(now) or 0) + 1)  # the account has the events before its end
    return (last, reason, failure) if last < now else (now, "", failure)


def recorded_by_cluster(log: str) -> ClusterRecord:
    """Return the operator's record beside a log; an empty one without it.

    The log is the directory of a run or of its journal.
    """
    if log.startswith(CLOUD_LOGGING):
        return NOTHING_RECORDED
    directory = absolute(log).rstrip("/")
    is_journal = directory.endswith(f"/{REPORTED_DIR}")
    with suppress(StoreError, ConfigurationError, OSError, ValueError):  # the account does not need it
        with open_store(directory).open(CLUSTER_RECORD if is_journal else f"{REPORTED_DIR}/{CLUSTER_RECORD}") as file:
            text = file.read(MAX_BYTES + 1)
        if len(text) <= MAX_BYTES:
            return ClusterRecord.parse(text)
    return NOTHING_RECORDED


def _cache_dir() -> str:
    """Return the directory of snapshots."""
    return os.environ.get(CACHE_DIR) or "/tmp"  # noqa: S108 - the peer's default


def _no_event(log: Log, url: str, job: str | None, ignored: int) -> str:
    """Return the message for a log without events."""
    invalid = f", and {ignored} invalid lines" if ignored else ""
    if job is None:
        return f"{log.name}: no goodput events{invalid}; pass the log of a job"
    every = open_log(url)
    every.read_new(History(), datetime.now(timezone.utc))
    jobs = f"its jobs are: {', '.join(sorted(every.jobs))}" if every.jobs else "it may be the log of another job"
    return f"--job {job}: {log.name} has no event of this job{invalid}; {jobs}"


def _one(known: Sequence[str], wanted: str, name: str) -> str:
    """Return the run whose id is `wanted`, or the only one whose id starts with it."""
    matches = [wanted] if wanted in known else [run for run in known if run.startswith(wanted)]
    if len(matches) != 1:
        number = f"{len(matches)} runs start" if matches else "no run starts"
        raise ConfigurationError(f"--run {wanted}: {number} with it in {name}; its runs are: {', '.join(known)}")
    return matches[0]
