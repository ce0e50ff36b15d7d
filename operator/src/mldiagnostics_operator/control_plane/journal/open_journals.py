"""Journals that are kept open between two accounts, within a budget."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from mldiagnostics_operator.control_plane.limits import EVENT_BYTES, JOURNAL_IDLE_S, OPEN_JOURNAL_BYTES

if TYPE_CHECKING:
    from mldiagnostics.goodput.ledger.history import History
    from mldiagnostics.goodput.log import Log
    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.memory.budget import FairBudget


class OpenJournal(NamedTuple):
    """A journal, and its events so far."""

    log: Log
    history: History

    @property
    def bytes(self) -> int:
        """Its memory."""
        return OPEN_JOURNAL_BYTES + EVENT_BYTES * self.history.size


class _Kept(NamedTuple):
    journal: OpenJournal
    bytes: int
    used_s: float


class OpenJournals:
    """Keeps journals open, so that only their new lines are read.

    A journal without room is closed, and read from its beginning next time: those that are kept stay, because all runs
    come in turn, and one in place of another would never be there when its run comes. Only idle ones make room.

    Args:
        budget: Memory of the journals, which namespaces and runs share.
    """

    def __init__(self, budget: FairBudget) -> None:
        self._budget = budget
        self._kept: OrderedDict[RunKey, _Kept] = OrderedDict()
        """By their last use, oldest first."""

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def take(self, key: RunKey) -> OpenJournal | None:
        """Return the journal of a run, which is not kept any more; None if it was not."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        self._budget.add(key, -kept.bytes)
        return kept.journal

    def keep(self, key: RunKey, journal: OpenJournal, now_s: float) -> None:
        """Keep a journal that was just used, if there is room.

        Args:
            key: Its run.
            journal: The journal.
            now_s: Current time in seconds, of any steady clock.
        """
        self.take(key)
        for idle in list(self._kept)[: self._idle(now_s)]:
            self.take(idle)
        size = journal.bytes
        if size <= self._budget.room(key):
            self._kept[key] = _Kept(journal, size, now_s)
            self._budget.add(key, size)

    def _idle(self, now_s: float) -> int:
        """Return how many of the oldest ones are idle."""
        number = 0
        for kept in self._kept.values():
            if now_s - kept.used_s < JOURNAL_IDLE_S:
                break
            number += 1
        return number
