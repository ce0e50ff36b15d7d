"""The facts about a run that decide its status."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Self

from mldiagnostics_api.formats import moment
from mldiagnostics_api.lifecycle import Lifecycle
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.reports.reported_run import ReportedRun
from mldiagnostics_api.runs.attempts import RestartCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Everything that is known about a run now, without its history."""

    run_id: str
    workload: str = ""
    """Kind and name, such as `JobSet/trainer`; empty for a run without a workload."""
    display_name: str = ""
    """`spec.displayName`."""
    storage: str = ""
    """Root that the operator uses for its files; empty without one."""
    generation: int = 1
    lifecycle: Lifecycle | None = None
    """State of the workload; None if it is not observed."""
    gone: bool = False
    """Whether the workload was deleted."""
    endless: bool = False
    """Whether deletion is the usual end of the workload's kind."""
    reported: ReportedRun | None = None
    listening_since: datetime | None = None
    """Time by which each process that lives has reported to this leader; None for the beginning."""
    program: PodProgram | None = None
    """The container of the pod that leads; None if it is not known."""
    crashing: PodProgram | None = None
    """A container whose restart the kubelet delays: that of the pod that leads before others; None without one."""
    restarts: int | None = None
    """Restarts of the containers of all pods; None if no pod is known."""

    @property
    def is_independent(self) -> bool:
        """Whether no rank leads the processes, neither of the kind nor of a launcher."""
        world_size = self.reported.world_size if self.reported else None
        return self.lifecycle is not None and self.lifecycle.independent and (world_size or 1) == 1

    def without_account(self) -> Self:
        """Return the facts without steps and goodput, if the processes are independent."""
        if not self.is_independent or self.reported is None:
            return self
        hosts = [replace(host, step=None, changed=None) for host in self.reported.hosts]
        nothing: dict[str, Any] = {"step": None, "step_time_seconds": None, "progress_changed": None, "goodput": None}
        return replace(self, reported=replace(self.reported, hosts=hosts, **nothing))

    @property
    def shows_start(self) -> bool:
        """Whether they show that the run has started."""
        if self.reported is not None or self.crashing is not None:
            return True
        known = self.lifecycle
        return known is not None and known.phase in FINISHED_RUN_PHASES and known.ran

    @property
    def started(self) -> datetime | None:
        """Start of the workload, else of the processes; None if it is not known."""
        reported = moment(self.reported.started) if self.reported else None
        return (self.lifecycle.started if self.lifecycle else None) or reported

    @property
    def counts(self) -> RestartCounts:
        """Counts of the restarts."""
        if self.is_independent:
            return RestartCounts()
        known, reported = self.lifecycle, self.reported
        if known is None:
            return RestartCounts(controller=reported.attempt if reported else 0, counts_pods=True)
        return RestartCounts(controller=known.attempt, program=self.program, counts_pods=known.counts_pods)
