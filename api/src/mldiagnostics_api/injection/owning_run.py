"""The run that a pod belongs to, or the reason why there is no run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mldiagnostics_api.injection.model import InjectionReason, OwnersUnknown
from mldiagnostics_api.injection.shape import PodShape
from mldiagnostics_api.workloads.kinds import LONE_POD, Object, WorkloadKind, workload_of
from mldiagnostics_api.workloads.owners import ObjectReference, WorkloadRun, lone_run, run_of


@dataclass(frozen=True, slots=True)
class OwningRun:
    """A run and its kind of workload."""

    run: WorkloadRun
    workload: WorkloadKind

    @property
    def labels(self) -> Mapping[str, str]:
        """Labels of the workload."""
        return self.run.workload["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations of the workload."""
        return self.run.workload["metadata"].get("annotations") or {}


@dataclass(frozen=True, slots=True)
class NoRun:
    """The reason why a pod has no run."""

    reason: InjectionReason
    message: str


def find_owning_run(pod: PodShape, owners: tuple[Object, ...] | OwnersUnknown, now: datetime) -> OwningRun | NoRun:
    """Return the run of a pod from its owners; one without owners is its own run."""
    if pod.mirror:
        return NoRun(InjectionReason.MIRROR_POD, "the pod is the mirror of a static pod, which cannot be changed")
    if pod.controller and not pod.controller.can_belong_to_run:
        return NoRun(InjectionReason.KIND_NOT_SUPPORTED, f"{pod.controller.kind}: not a supported kind of workload")
    if isinstance(owners, OwnersUnknown):
        return NoRun(InjectionReason.OWNERS_UNKNOWN, f"the owners of the pod could not be read: {owners.message}")
    if pod.controller is None:
        return _alone(pod, now)
    if missing := _missing(pod.controller, owners):
        named = f"{missing.kind} {missing.name}" + (f" with uid {missing.uid}" if missing.uid else "")
        return NoRun(InjectionReason.OWNER_NOT_FOUND, f"owner {named}: does not exist, or owns itself")
    run = run_of(owners)
    workload = workload_of(run.kind, run.workload["apiVersion"]) if run else None
    if run is None or workload is None:
        return NoRun(
            InjectionReason.KIND_NOT_SUPPORTED,
            f"{pod.controller.kind}: neither it nor its owners are a supported kind of workload",
        )
    return OwningRun(run, workload)


def _alone(pod: PodShape, now: datetime) -> OwningRun | NoRun:
    if not pod.name:
        return NoRun(
            InjectionReason.NAME_NOT_KNOWN,
            "metadata.generateName: the run id needs the name of the pod; set metadata.name",
        )
    return OwningRun(lone_run(pod.name, pod.labels or {}, pod.annotations or {}, now), LONE_POD)


def _missing(first: ObjectReference, owners: tuple[Object, ...]) -> ObjectReference | None:
    """Return the owner that the walk could not reach; None if it reached the top."""
    if not owners or owners[0]["metadata"].get("uid") != first.uid:
        return first
    above = ObjectReference.to_controller(owners[-1]["metadata"], first.namespace)
    return above if above and above.can_belong_to_run else None
