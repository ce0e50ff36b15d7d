"""Runs after their end, whose causes and captures may arrive late."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mldiagnostics_api.disruptions.decision import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics_operator.runs.run import Run

KEPT_S: Final = WINDOW.total_seconds()
"""Evidence of a cause arrives for so long."""
MAX_RUNS: Final = 1024
"""Ended runs in memory, 4 KiB each; the oldest leaves first."""


class EndedRuns:
    """The ended runs in memory, in the order of their ends."""

    def __init__(self) -> None:
        self._ends_s: dict[str, tuple[float, Run]] = {}
        """By uid of the object."""

    def add(self, run: Run, *, now_s: float) -> None:
        """Keep a run that has just ended, or that was read again."""
        self._ends_s.pop(run.meta.uid, None)
        self._ends_s[run.meta.uid] = now_s, run

    def take_expired(self, *, now_s: float) -> Iterator[Run]:
        """Drop the runs whose time is over, and those beyond the bound."""
        while self._ends_s:
            uid, (ended_s, run) = next(iter(self._ends_s.items()))
            if now_s - ended_s < KEPT_S and len(self._ends_s) <= MAX_RUNS:
                return
            del self._ends_s[uid]
            yield run
