"""Which runs of a source are meant; pure."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mldiagnostics.lifecycle.outcome import Phase
    from mldiagnostics.runs import RunRow

__all__ = ["RunFilter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are meant; None for all."""

    group: str | None = None
    tag: str | None = None
    phase: Phase | None = None
    since: float | None = None
    name: str | None = None
    limit: int | None = None

    def matches(self, row: RunRow) -> bool:
        """Return whether a run is meant, not considering `limit`."""
        if self.group is not None and row.run_group != self.group:
            return False
        if self.tag is not None and self.tag not in row.tags:
            return False
        if self.phase is not None and row.phase != self.phase:
            return False
        if self.name is not None and not fnmatchcase(row.name, self.name):
            return False
        alive = max(row.created or 0, row.started or 0, row.heartbeat or 0, row.ended or 0)
        return self.since is None or alive > self.since
