"""The exchange between captures and runs of one leadership: reports and sessions."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

from mldiagnostics.control_plane.report import MAX_SESSIONS
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.runs.findings import newest_findings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_api.v1alpha1 import RunFinding, RunSession

MAX_RUNS: Final = 1024
"""Runs whose newest sessions are kept until their status has them."""


class RunReports(Protocol):
    """Runs as their processes reported them; `ReportTable` is one."""

    def runs(self) -> Iterable[RunKey]:
        """Return the runs of which something is known."""

    def view(self, key: RunKey) -> ReportedRun | None:
        """Return what is known about a run."""


class RunExchange:
    """Captures read reports of runs, and runs sessions and findings of captures.

    Used by one event loop; no method waits.
    """

    def __init__(self, reports: RunReports | None = None) -> None:
        self.reports = reports
        self._sessions: OrderedDict[RunKey, dict[str, RunSession]] = OrderedDict()
        self._findings: OrderedDict[RunKey, Sequence[RunFinding]] = OrderedDict()
        self._subscribers: list[Callable[[RunKey], None]] = []

    def reported_in(self, namespace: str) -> list[ReportedRun]:
        """Return the runs that were reported in a namespace."""
        if self.reports is None:
            return []
        views = (self.reports.view(key) for key in self.reports.runs() if key.namespace == namespace)
        return [view for view in views if view is not None]

    def note_sessions(self, namespace: str, sessions: Mapping[str, RunSession]) -> None:
        """Note a session of a capture in each of its runs, by run id."""
        for run_id, session in sessions.items():
            key = RunKey(namespace, run_id)
            noted = self._sessions.setdefault(key, {})
            self._sessions.move_to_end(key)
            noted[session.id] = session
            if len(noted) > MAX_SESSIONS:
                del noted[next(iter(noted))]
            if len(self._sessions) > MAX_RUNS:
                self._sessions.popitem(last=False)
            for changed in self._subscribers:
                changed(key)

    def sessions(self, key: RunKey) -> Sequence[RunSession]:
        """Return the newest sessions of captures of a run."""
        return tuple(self._sessions.get(key, {}).values())

    def note_findings(self, key: RunKey, findings: Sequence[RunFinding]) -> None:
        """Note the findings of a diagnosed capture in a run, unless it has newer ones."""
        before = self._findings.get(key, ())
        if (newest := newest_findings(before, findings)) == before:
            return
        self._findings[key] = newest
        self._findings.move_to_end(key)
        if len(self._findings) > MAX_RUNS:
            self._findings.popitem(last=False)
        for changed in self._subscribers:
            changed(key)

    def findings(self, key: RunKey) -> Sequence[RunFinding]:
        """Return the findings of the newest diagnosed capture of a run, if one is known."""
        return self._findings.get(key, ())

    def subscribe(self, changed: Callable[[RunKey], None]) -> None:
        """Call a function with the key of each run that has a new session or new findings."""
        self._subscribers.append(changed)
