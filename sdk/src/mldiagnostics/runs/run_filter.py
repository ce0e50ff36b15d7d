"""Filter of runs, the same for files and MLRuns; pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics.lifecycle.outcome import Phase
    from mldiagnostics.runs.row import RunRow


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant; None for all. The fields are those of `list_runs`."""

    name: str | None = None
    run_group: str | None = None
    tag: str | None = None
    namespace: str | None = None
    phase: Phase | None = None
    since: float | None = None
    limit: int | None = None

    def newest(self, rows: Iterable[RunRow]) -> list[RunRow]:
        """Return the runs that are meant, the newest first, at most `limit`."""
        matching = (row for row in rows if self._matches(row))
        return sorted(matching, key=lambda row: (-(row.created or 0.0), row.run_id))[: self.limit]

    def _matches(self, row: RunRow) -> bool:
        exact = ((self.run_group, row.run_group), (self.namespace, row.namespace), (self.phase, row.phase))
        if any(wanted is not None and value != wanted for wanted, value in exact):
            return False
        if self.name is not None and not fnmatchcase(row.name, self.name):
            return False
        if self.tag is not None and self.tag not in row.tags:
            return False
        alive = max(row.created or 0, row.started or 0, row.heartbeat or 0, row.ended or 0)
        return self.since is None or alive > self.since
