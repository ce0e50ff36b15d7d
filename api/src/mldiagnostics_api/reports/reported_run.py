"""Reports of all processes of a run, as one immutable view; pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.formats import moment
from mldiagnostics_api.reports.models import INTERVAL_S
from mldiagnostics_api.reports.shown_configs import ShownConfigs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics_api.reports.models import Phase
    from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
    from mldiagnostics_api.reports.run_key import RunKey


SILENT_INTERVALS: Final = 3
"""A process that has not reported for so many intervals is lost."""
SILENT_S: Final = SILENT_INTERVALS * INTERVAL_S
"""Seconds without a report after which a process is lost, at the usual interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedHost:
    """The newest report of one process; `received` is by the operator's clock."""

    rank: int | None
    slice: int | None
    name: str
    """Host name."""
    pod: str
    """Name of the pod, from the token; empty outside the cluster."""
    pod_uid: str
    node: str
    attempt: int
    incarnation: str
    ports: tuple[int, ...] = ()
    """Ports of its profiler servers."""
    server: str = ""
    """Make of the profiler server; empty without one."""
    server_version: str = ""
    tensorflow: bool | None = None
    phase: Phase = "Active"
    reason: str = ""
    message: str = ""
    step: int | None = None
    step_time_seconds: float | None = None
    changed: float | None = None
    """When its step changed, in Unix seconds by its own clock."""
    clock_ahead: float = 0.0
    """Seconds by which its clock was ahead of the operator's, transport included."""
    received: float
    """When its newest report arrived, in Unix seconds."""
    interval_s: int = INTERVAL_S
    """Seconds until its next report, as the answer to this one said."""
    unserved_s: int = 0
    """Seconds after its newest report in which no leader took reports."""

    @property
    def silent_s(self) -> int:
        """Seconds without a report after which it is lost."""
        return SILENT_INTERVALS * self.interval_s + self.unserved_s

    @property
    def lost_time(self) -> datetime:
        """Time after which it counts as lost; one that has ended is never lost."""
        if self.phase != "Active":
            return datetime.max.replace(tzinfo=UTC)
        return datetime.fromtimestamp(self.received, UTC) + timedelta(seconds=self.silent_s)

    @property
    def changed_time(self) -> datetime | None:
        """When its step changed, by the operator's clock; None without a step."""
        return None if self.changed is None or self.step is None else moment(self.changed - self.clock_ahead)


@dataclass(frozen=True, slots=True)
class ReportedSession:
    """A programmatic profile; times are Unix seconds."""

    id: str
    directory: str = ""
    start: float | None = None
    stop: float | None = None
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRun:
    """A run as its processes reported it.

    The facts about the run are those of the process that leads; `hosts` has one entry for each process of the newest
    attempt that it reported in, by rank.
    """

    key: RunKey
    revision: int
    """Grows with every change of this run."""
    name: str = ""
    group: str = ""
    tags: Sequence[str] = ()
    notes: str = ""
    storage: str = ""
    aliases: tuple[str, ...] = ()
    """Ids that other clients use for this run."""
    attempt: int = 0
    """The newest attempt that a process reported."""
    world_size: int | None = None
    phase: Phase = "Active"
    reason: str = ""
    message: str = ""
    step: int | None = None
    step_time_seconds: float | None = None
    progress_changed: float | None = None
    """When the step changed, in Unix seconds by the clock of the process that leads."""
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    configs: ShownConfigs = field(default_factory=ShownConfigs)
    sessions: Sequence[ReportedSession] = ()
    started: float | None = None
    ended: float | None = None
    first_received: float
    """When the first report arrived, in Unix seconds."""
    last_received: float
    """When the newest report arrived, in Unix seconds."""
    hosts: Sequence[ReportedHost] = ()
    goodput: ReportedGoodput | None = None
    left_out: Sequence[str] = ()
    """Parts of the newest reports that were not kept, because the namespace has used its share of the memory."""
    events_until: float = 0.0
    """Moment up to which the journal has all goodput events, in Unix seconds by the clock of the process that leads:
    only it reports them."""

    @property
    def silent_s(self) -> int:
        """Seconds without a report of any process after which the run is lost."""
        return max((host.silent_s for host in self.hosts), default=SILENT_S)
