"""The memory of reports, shared by namespaces and runs; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mldiagnostics_api.reports.run_key import RunKey

_SHARE: Final = 5
"""Reports take at most a fifth of the process's memory; the rest is for captures, watches and connections."""
_EVENTS_SHARE: Final = 4
"""A quarter of that is for goodput events that the journal does not have yet."""
_JOURNALS_SHARE: Final = 10
"""Journals that are kept open for the next account of their run take at most a tenth of the process's memory."""
DEFAULT_LIMIT_BYTES: Final = 780 * 2**20
"""The chart's limit with its default values, for a process without a limit."""


class FairBudget:
    """Bytes of all runs, shared by namespaces and in each by its runs.

    Each namespace may use as much as it leaves free, and in it each run. So one namespace gets at most half of the
    budget, two get a third each, and there is always room for another one.

    Args:
        total: Bytes of all namespaces.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self.used = 0
        self._namespaces = Counter[str]()
        self._runs = Counter["RunKey"]()

    def used_by(self, namespace: str) -> int:
        """Return the bytes of a namespace."""
        return self._namespaces[namespace]

    def room(self, key: RunKey) -> int:
        """Return how many bytes a run may add now."""
        of_namespace = self.total - self.used - self._namespaces[key.namespace]
        return max(0, of_namespace - self._runs[key])

    def add(self, key: RunKey, change: int) -> None:
        """Count bytes that a run has taken, or given back if negative."""
        self.used += change
        self._namespaces[key.namespace] += change
        if not self._namespaces[key.namespace]:
            del self._namespaces[key.namespace]
        self._runs[key] += change
        if not self._runs[key]:
            del self._runs[key]


class ReportBudget:
    """The memory of reports, from the memory limit of the process.

    Args:
        limit_bytes: Memory limit of the process.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        total = limit_bytes // _SHARE
        self.events = FairBudget(total // _EVENTS_SHARE)
        """Goodput events that the journal does not have yet."""
        self.state = FairBudget(total - self.events.total)
        """Runs, and the newest report of each process."""
        self.journal_bytes = limit_bytes // _JOURNALS_SHARE
        """Open journals, for accounts of goodput, which another process has."""
