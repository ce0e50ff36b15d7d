"""One run in memory: its object, its workload, and the state of its signals."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.lifecycle import lifecycle
from mldiagnostics_api.names import FINISHED_RUN_PHASES, RUN_ANNOTATION, RUN_GROUP_LABEL, RUN_LABEL
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.names import run_label
from mldiagnostics_api.runs.signal_conditions import restored_states, thresholds
from mldiagnostics_api.runs.signals import SignalThresholds
from mldiagnostics_api.v1alpha1 import MLRunStatus, ObjectMeta, RunWorkload, read_run
from mldiagnostics_api.workloads.kinds import workload_of

from mldiagnostics_operator.runs.keys import ObjectKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from mldiagnostics_api.reports.reported_run import ReportedRun
    from mldiagnostics_api.runs.signal_conditions import SignalStates
    from mldiagnostics_api.v1alpha1 import RunSession
    from mldiagnostics_api.workloads.kinds import WorkloadKind

    from mldiagnostics_operator.runs.keys import WorkloadKey
    from mldiagnostics_operator.runs.watches.observed_workload import ObservedWorkload
    from mldiagnostics_operator.runs.watches.run_pods import LabelKey


UPDATE_INTERVAL_S: Final = 10.0
"""Changes that nobody waits for are written at most this often."""


@dataclass(slots=True)
class Run:
    """An MLRun with the newest observations of its workload."""

    meta: ObjectMeta
    version: str
    spec: Mapping[str, Any]
    """As the API returned it: every write of the status repeats it."""
    status: MLRunStatus
    run_id: str
    workload: RunWorkload | None
    deleted: bool = False
    """Whether the object was deleted."""
    observed: ObservedWorkload | None = None
    is_current: bool = False
    """Whether the workload was observed since the last resync; it is read if no watch delivers it."""
    gone: bool = False
    """Whether the workload was deleted."""
    opted_in_by: WorkloadKey | None = None
    """A labelled pod of the workload; maybe no watch delivers the workload itself."""
    limits: SignalThresholds = field(default_factory=SignalThresholds)
    signals: SignalStates = field(default_factory=dict)
    """The signals after the last look at the run."""
    stored_sessions: Sequence[RunSession] = ()
    """Profiles that are in its storage."""
    written: MLRunStatus | None = None
    """The status that this process wrote last, or is writing."""
    written_s: float = float("-inf")
    """Time of the event loop of the last write."""

    @property
    def due_s(self) -> float:
        """Time of the event loop from which changes that nobody waits for are written."""
        return self.written_s + UPDATE_INTERVAL_S

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Run:
        """Parse an object as the API returns it.

        Raises:
            ValueError: The object does not match the schema.
        """
        parsed = read_run(body)
        run_id = parsed.spec.run_id or parsed.metadata.annotations.get(RUN_ANNOTATION, "")
        return cls(
            meta=parsed.metadata,
            version=body["metadata"]["resourceVersion"],
            spec=body.get("spec") or {},
            status=parsed.status or MLRunStatus(),
            run_id=run_id,
            workload=parsed.spec.workload_ref,
            limits=thresholds(parsed.spec.signals),
            signals=restored_states(parsed.status or MLRunStatus()),
        )

    def absorb(self, newer: Run) -> None:
        """Take over a newer version of the object."""
        self.meta, self.version, self.spec, self.status = newer.meta, newer.version, newer.spec, newer.status
        self.limits, self.deleted = newer.limits, False

    def has_written(self, newer: Run) -> bool:
        """Return whether a newer version differs by the written status alone."""
        return newer.status == self.written and (newer.spec, newer.meta) == (self.spec, self.meta)

    @property
    def key(self) -> ObjectKey:
        """Key of the object."""
        return ObjectKey(self.meta.namespace, self.meta.name)

    @property
    def report_key(self) -> RunKey:
        """The run in the table of reports."""
        return RunKey(self.meta.namespace, self.run_id)

    @property
    def pods_key(self) -> LabelKey:
        """The run's pods in the store of labelled pods."""
        return self.meta.namespace, run_label(self.run_id)

    @property
    def storage_location(self) -> str | None:
        """`spec.storageLocation`."""
        return self.spec.get("storageLocation")

    @property
    def finished(self) -> bool:
        """Whether the status has a final phase."""
        return self.status.phase in FINISHED_RUN_PHASES

    @property
    def kind(self) -> WorkloadKind | None:
        """Table entry of the workload's kind.

        None without a workload of a known kind that can be a run.
        """
        kind = workload_of(self.workload.kind, self.workload.api_version) if self.workload else None
        return None if kind is None or kind.groups else kind

    def facts(
        self, reported: ReportedRun | None, storage: str = "", *, listening_since: datetime | None = None
    ) -> RunFacts:
        """Return everything that is known about the run now.

        Args:
            reported: Its reports; None without one.
            storage: Root that the operator uses for its files; empty without one.
            listening_since: Time by which each process that lives has reported to this leader.
        """
        kind = self.kind
        return RunFacts(
            run_id=self.run_id,
            workload=f"{self.workload.kind}/{self.workload.name}" if self.workload else "",
            display_name=self.spec.get("displayName") or "",
            storage=storage,
            generation=self.meta.generation,
            lifecycle=self.observed.state if self.observed else None,
            gone=self.gone,
            endless=bool(kind and lifecycle(kind, {}).endless),
            reported=reported,
            listening_since=listening_since,
        )


def run_manifest(
    name: str,
    namespace: str,
    run_id: str,
    *,
    workload: Mapping[str, str] | None = None,
    group: str = "",
    title: str = "",
) -> dict[str, Any]:
    """Return the object of a new run.

    Args:
        name: Name of the object.
        namespace: Namespace of the workload or of the reporter.
        run_id: Id of the run.
        workload: The fields of `workloadRef`; None without a workload.
        group: Group of runs; empty without one.
        title: Name for people; empty without one.
    """
    labels = {RUN_LABEL: run_label(run_id)} | ({RUN_GROUP_LABEL: group} if group else {})
    spec: dict[str, Any] = {"runId": run_id}
    if workload is not None:
        spec["workloadRef"] = dict(workload)
    if group:
        spec["runGroup"] = group
    if title:
        spec["displayName"] = title
    return {
        "apiVersion": RUNS.api_version,
        "kind": RUNS.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {RUN_ANNOTATION: run_id},
        },
        "spec": spec,
    }
