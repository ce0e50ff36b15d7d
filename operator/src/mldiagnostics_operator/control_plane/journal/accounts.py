"""Goodput of reported runs: accounts of their journals, in a thread."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import LogMissing, MLDiagnosticsError
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.load_reports import recorded_by_cluster
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.report.build import bucket_name
from mldiagnostics.goodput.report.figures import reliability_of
from mldiagnostics.store.shared import shared_directory
from mldiagnostics_api.captures.location import Medium
from mldiagnostics_api.reports.reported_run import ReportedGoodput

from mldiagnostics_operator.control_plane.journal.open_journals import OpenJournal, OpenJournals
from mldiagnostics_operator.control_plane.limits import ACCOUNT_INTERVAL_S, ACCOUNT_SHARE
from mldiagnostics_operator.workqueue import Workqueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics.goodput.account import Account
    from mldiagnostics.goodput.report.figures import Reliability
    from mldiagnostics_api.captures.location import Location
    from mldiagnostics_api.reports.reported_run import RunKey

    from mldiagnostics_operator.control_plane.memory.table import ReportTable

_log: Final = logging.getLogger(__name__)


class Accounts:
    """Computes the goodput of runs whose journal has new events, one after the other.

    It reads the journal and the record of the cluster beside it, as every reader of goodput logs does, so that all
    have the same figures.

    Args:
        table: The memory of the reports, which gets the accounts.
        location: Returns the directory of a run's journal.
        volume_root: Directory of the operator's volume.
    """

    def __init__(
        self,
        table: ReportTable,
        location: Callable[[RunKey, str], Location],
        volume_root: Path,
        *,
        interval_s: float = ACCOUNT_INTERVAL_S,
    ) -> None:
        self._table = table
        self._location = location
        self._volume_root = volume_root
        self._interval_s = interval_s
        self._queue: Workqueue[RunKey] = Workqueue()
        self._due_s: dict[RunKey, float] = {}
        """Earliest times of the next accounts, by the event loop's clock."""
        self._journals = OpenJournals(table.budget.journals)

    def note(self, key: RunKey) -> None:
        """Compute the account of a run soon: its journal or its record is new."""
        self._queue.add_after(key, self._due_s.get(key, 0.0) - asyncio.get_running_loop().time())

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run."""
        self._queue.drop(key)
        self._due_s.pop(key, None)
        self._journals.take(key)

    async def run(self) -> None:
        """Compute accounts until cancelled."""
        clock = asyncio.get_running_loop().time
        with (
            shared_directory(self._volume_root),
            ThreadPoolExecutor(1, thread_name_prefix="accounts") as pool,
        ):
            while True:
                key = await self._queue.get()
                start_s = clock()
                try:
                    await self._compute(key, pool)
                finally:
                    self._queue.done(key)
                spent_s = clock() - start_s
                if self._table.view(key) is not None:
                    self._due_s[key] = start_s + max(self._interval_s, ACCOUNT_SHARE * spent_s)
                await asyncio.sleep(spent_s)  # half of the time is for reports

    async def _compute(self, key: RunKey, pool: ThreadPoolExecutor) -> None:
        run, owner = self._table.view(key), self._table.owner(key)
        if run is None or owner is None:
            return
        finished = run.phase != "Active"
        as_of = run.events_until or run.last_received  # journals of earlier versions do not have it
        if finished and run.ended is not None:
            as_of = min(as_of, run.ended)
        place, loop = self._place(self._location(key, owner)), asyncio.get_running_loop()
        ends_with_events = not self._table.accepts_events(key)
        try:
            journal = self._journals.take(key)
            if journal is None:
                journal = await loop.run_in_executor(pool, _opened, place)
            account = partial(_account, journal, place, as_of, ends_with_events=ends_with_events)
            goodput = await loop.run_in_executor(pool, account)
        except LogMissing:
            return
        except (MLDiagnosticsError, OSError) as error:
            _log.warning("The goodput of run %(run)s is not computed: %(error)s", {"run": key.run_id, "error": error})
            return
        if not finished and self._table.view(key) is not None:
            self._journals.keep(key, journal, loop.time())
        if goodput is not None:
            self._table.set_goodput(key, goodput)

    def _place(self, location: Location) -> str:
        if location.medium is Medium.VOLUME:
            return str(self._volume_root.joinpath(*location.segments))
        return str(location)


def _opened(place: str) -> OpenJournal:
    return OpenJournal(open_log(place), History())


def _account(journal: OpenJournal, place: str, now: float, *, ends_with_events: bool) -> ReportedGoodput | None:
    """Read the new lines of a journal, and return its account.

    Args:
        journal: The journal.
        place: Its directory, which also has the record of the cluster.
        now: End of the account, in Unix seconds by the clock of the process that leads, which may be ahead.
        ends_with_events: No later events are kept, so the account ends with the last one.
    """
    journal.log.read_new(journal.history, datetime.fromtimestamp(now, UTC))
    moment = round(now * 1e6)
    cluster = recorded_by_cluster(place)
    run = journal.history.of(moment)
    if ends_with_events and (last := run.last_event(moment)) is not None:
        moment = last
    if run.first_event is None or run.first_event > moment:
        return None
    losses = reliability_of(run, moment, cluster)
    return _goodput(run.account(moment), losses, attempts=len(run.attempts(moment)), as_of=moment / 1e6)


def _goodput(account: Account, losses: Reliability, *, attempts: int, as_of: float) -> ReportedGoodput:
    return ReportedGoodput(
        as_of=as_of,
        started=account.start / 1e6,
        elapsed=account.elapsed / 1e6,
        productive=account.productive / 1e6,
        unproductive={bucket_name(spent): length / 1e6 for spent, length in account.unproductive.items()},
        disruptions=account.disruptions,
        attempts=attempts,
        ettr=losses.ettr_with_queueing,
        mttr_seconds=losses.failures.recovery.total_s if losses.failures.recovery else None,
        mttf_seconds=losses.failures.mttf_s,
        last_step=account.last_step,
    )
