"""The reports of runs that captures and runs of one operator share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics_api.reported import ReportedRun, RunKey


class RunReports(Protocol):
    """Runs as their processes reported them; `ReportTable` is one."""

    def runs(self) -> Iterable[RunKey]:
        """Return the runs of which something is known."""

    def view(self, key: RunKey) -> ReportedRun | None:
        """Return what is known about a run."""


def reported_in(reports: RunReports, namespace: str) -> list[ReportedRun]:
    """Return the runs that were reported in a namespace."""
    views = (reports.view(key) for key in reports.runs() if key.namespace == namespace)
    return [view for view in views if view is not None]
