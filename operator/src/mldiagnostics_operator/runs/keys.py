"""The keys of the queue of runs: an object, or what an object may be missing for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_api.workloads.kinds import WorkloadKind

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
    """Key of a workload that may be a run without an object.

    It does not hold the workload: one that changes while its key waits is read from its watch as it is then.
    """

    uid: str
    kind: WorkloadKind
    namespace: str
    name: str

    @classmethod
    def of(cls, observed: ObservedWorkload) -> WorkloadKey:
        """Return the key of an observed workload."""
        return cls(observed.uid, observed.kind, observed.namespace, observed.name)

    @property
    def title(self) -> str:
        """Kind, namespace and name, for logs."""
        return f"{self.kind.kind} {self.namespace}/{self.name}"


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
