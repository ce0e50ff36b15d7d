"""Captures of a run: from the name of an MLRun to the workload or the pods."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from mldiagnostics_api.captures.refusal import RefusalError
from mldiagnostics_api.formats import enumerated
from mldiagnostics_api.names import FINISHED_RUN_PHASES, RefusalReason
from mldiagnostics_api.v1alpha1.mlrun import MLRunObject
from mldiagnostics_api.workloads.kinds import LONE_POD, WorkloadKind, workload_of


@dataclass(frozen=True, slots=True)
class RunTarget:
    """An MLRun that a capture names, and the pods that reported it."""

    run: MLRunObject
    pods: Mapping[str, str] = field(default_factory=dict)
    """Uid and name of the pods whose processes report the run."""

    @property
    def step_time_s(self) -> float | None:
        """Recent time of a step; None if it is not known."""
        status = self.run.status
        return status.progress.step_time_seconds if status and status.progress else None


@dataclass(frozen=True, slots=True)
class RunPods:
    """The pods of a run: those of a workload, or by name."""

    workload: WorkloadKind | None
    workload_name: str
    pods: tuple[str, ...]
    uids: frozenset[str]
    """Uids of the workload, or of the pods; an object with another uid is not the run's."""


def run_pods(name: str, namespace: str, target: RunTarget | None) -> RunPods:
    """Return the pods of the run that a capture names.

    Args:
        name: `target.runRef.name`.
        namespace: Namespace of the capture and of the run.
        target: The run; None if there is no such MLRun.

    Raises:
        RefusalError: There is no such run, it has ended, or it has no pods in the cluster.
    """
    field_name = f"target.runRef '{name}'"
    if target is None:
        raise RefusalError(
            RefusalReason.RUN_NOT_FOUND,
            f"{field_name}: no such MLRun in namespace '{namespace}'; list them with `kubectl get mlruns`",
            transient=True,
        )
    status, reference = target.run.status, target.run.spec.workload_ref
    if status is not None and status.phase in FINISHED_RUN_PHASES:
        raise RefusalError(
            RefusalReason.RUN_ENDED, f"{field_name}: the run has ended ({status.phase}); capture one that is Active"
        )
    if reference is None:
        if not target.pods:
            raise RefusalError(
                RefusalReason.RUN_WITHOUT_PODS,
                f"{field_name}: the run has no workload, and no pod of namespace '{namespace}' reports it; "
                "use podName, or start the profile in the program",
                transient=True,
            )
        return RunPods(None, "", tuple(sorted(target.pods.values())), frozenset(target.pods))
    uids = frozenset({reference.uid}) if reference.uid else frozenset[str]()
    kind = workload_of(reference.kind, reference.api_version)
    if kind is None or kind.groups:
        raise RefusalError(
            RefusalReason.KIND_NOT_SUPPORTED,
            f"{field_name}: its workload is a {reference.kind}, whose pods are not known; use podName or selector",
        )
    if kind is LONE_POD:
        return RunPods(None, "", (reference.name,), uids)
    return RunPods(kind, reference.name, (), uids)


def replaced(description: str, name: str, uids: frozenset[str]) -> str:
    """Return the message about a workload that has another uid than that of the run."""
    return (
        f"target.runRef '{name}': {description} is not the workload of the run, which had uid "
        f"{enumerated(sorted(uids))} and was deleted; capture the run of the new workload"
    )
