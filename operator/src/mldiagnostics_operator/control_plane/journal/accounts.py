"""Goodput of reported runs: accounts of their journals, one after the other."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.captures.location import Medium

from mldiagnostics_operator.control_plane.journal.account_worker import AccountFailed, AccountWorker
from mldiagnostics_operator.control_plane.limits import ACCOUNT_INTERVAL_S, ACCOUNT_SHARE, FAILED_ACCOUNT_S
from mldiagnostics_operator.workqueue import Workqueue

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mldiagnostics_api.captures.location import Location
    from mldiagnostics_api.reports.run_key import RunKey

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
        self._pauses_s: dict[str, float] = {}
        """Times until which namespaces wait whose accounts took more than they may."""
        self._worker = AccountWorker(volume_root, table.budget.journal_bytes)

    def note(self, key: RunKey) -> None:
        """Compute the account of a run soon: its journal or its record is new."""
        self._queue.add_after(key, self._due_s.get(key, 0.0) - asyncio.get_running_loop().time())

    def forget(self, key: RunKey) -> None:
        """Free the memory of a run."""
        self._queue.drop(key)
        self._due_s.pop(key, None)
        self._worker.forget(key)

    async def run(self) -> None:
        """Compute accounts until cancelled."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                key = await self._queue.get()
                start_s, shortest_s = clock(), self._interval_s
                try:
                    spent_s = await self._compute(key)
                except AccountFailed as error:
                    _log.warning(
                        "The goodput of run %(run)s is not computed: %(error)s", {"run": key.run_id, "error": error}
                    )
                    spent_s = clock() - start_s
                    if error.exceeds:
                        shortest_s = FAILED_ACCOUNT_S
                        self._pauses_s[key.namespace] = clock() + ACCOUNT_SHARE * spent_s
                except Exception:  # noqa: BLE001 - the accounts of other runs go on after any error
                    _log.exception("The goodput of run %(run)s is not computed", {"run": key.run_id})
                    spent_s, shortest_s = clock() - start_s, FAILED_ACCOUNT_S
                finally:
                    self._queue.done(key)
                if self._table.view(key) is not None:
                    self._due_s[key] = start_s + max(shortest_s, ACCOUNT_SHARE * spent_s)
        finally:
            await self._worker.aclose()

    async def _compute(self, key: RunKey) -> float:
        """Compute the account of a run; return the seconds it took.

        Raises:
            AccountFailed: There is no account.
        """
        run, owner = self._table.view(key), self._table.owner(key)
        if run is None or owner is None:
            return 0.0
        pause_s = self._pauses_s.get(key.namespace, 0.0) - asyncio.get_running_loop().time()
        if pause_s > 0:
            self._queue.add_after(key, pause_s)
            return 0.0
        self._pauses_s.pop(key.namespace, None)
        finished = run.phase != "Active"
        as_of = run.events_until or run.last_received  # journals of earlier versions do not have it
        if finished and run.ended is not None:
            as_of = min(as_of, run.ended)
        goodput, spent_s = await self._worker.account(
            key,
            self._place(self._location(key, owner)),
            as_of,
            ends_with_events=not self._table.accepts_events(key),
            finished=finished,
        )
        if goodput is not None:
            self._table.set_goodput(key, goodput)
        return spent_s

    def _place(self, location: Location) -> str:
        if location.medium is Medium.VOLUME:
            return str(self._volume_root.joinpath(*location.segments))
        return str(location)
