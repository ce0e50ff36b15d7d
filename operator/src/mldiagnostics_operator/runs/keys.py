"""The keys of the queue of runs: an object, or what an object may be missing for."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mldiagnostics_api.reports.reported_run import RunKey

    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Key of an MLRun."""

    namespace: str
    name: str

    @property
    def title(self) -> str:
        """Namespace and name, for logs."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    """Key of a workload that may be a run without an object."""

    uid: str
    observed: ObservedWorkload = field(compare=False)
    """The workload when the key was added."""

    @property
    def namespace(self) -> str:
        """Namespace of the workload."""
        return self.observed.namespace

    @property
    def title(self) -> str:
        """Kind, namespace and name, for logs."""
        return f"{self.observed.kind.kind} {self.observed.namespace}/{self.observed.name}"


@dataclass(frozen=True, slots=True)
class ReportKey:
    """Key of a run that processes or captures name, and that is not in memory."""

    run: RunKey

    @property
    def namespace(self) -> str:
        """Namespace of the run."""
        return self.run.namespace

    @property
    def title(self) -> str:
        """Namespace and id of the run, for logs."""
        return f"{self.run.namespace}/{self.run.run_id}"


Key: TypeAlias = ObjectKey | WorkloadKey | ReportKey
