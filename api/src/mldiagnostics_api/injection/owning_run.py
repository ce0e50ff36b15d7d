"""What a pod belongs to: the workload that is its run, or why none can be named."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from mldiagnostics_api.injection.model import InjectionReason, OwnersUnknown
from mldiagnostics_api.injection.shape import PodShape
from mldiagnostics_api.owners import ObjectReference, WorkloadRun, lone_run, run_of
from mldiagnostics_api.workloads import LONE_POD, Object, WorkloadKind, workload_of


@dataclass(frozen=True, slots=True)
class OwningRun:
    """The run, and what kind of workload it is."""

    run: WorkloadRun
    workload: WorkloadKind

    @property
    def labels(self) -> Mapping[str, str]:
        """Those of the workload."""
        return self.run.workload["metadata"].get("labels") or {}

    @property
    def annotations(self) -> Mapping[str, str]:
        """Those of the workload."""
        return self.run.workload["metadata"].get("annotations") or {}


@dataclass(frozen=True, slots=True)
class NoRun:
    """Nothing that can be a run, as far as one can tell."""

    reason: InjectionReason
    message: str


def belonging(pod: PodShape, owners: tuple[Object, ...] | OwnersUnknown, now: datetime) -> OwningRun | NoRun:
    """Name the run of a pod by its owners, nearest first; a pod that nothing controls is its own."""
    if pod.mirror:
        return NoRun(InjectionReason.MIRROR_POD, "the pod stands for a static pod of its node")
    if pod.controller and not pod.controller.counts:
        return NoRun(
            InjectionReason.KIND_NOT_SUPPORTED, f"a {pod.controller.kind} is no kind of workload that can be a run"
        )
    if isinstance(owners, OwnersUnknown):
        return NoRun(InjectionReason.OWNERS_UNKNOWN, f"the owners of the pod are not known: {owners.message}")
    if pod.controller is None:
        return _alone(pod, now)
    if missing := _missing(pod.controller, owners):
        named = f"{missing.kind} {missing.name}" + (f" with uid {missing.uid}" if missing.uid else "")
        return NoRun(
            InjectionReason.OWNER_NOT_FOUND, f"the pod belongs to {named}, which does not exist or owns itself"
        )
    run = run_of(owners)
    workload = workload_of(run.kind, run.workload["apiVersion"]) if run else None
    if run is None or workload is None:
        return NoRun(
            InjectionReason.KIND_NOT_SUPPORTED, f"no owner of the pod can be a run, {pod.controller.kind} included"
        )
    return OwningRun(run, workload)


def _alone(pod: PodShape, now: datetime) -> OwningRun | NoRun:
    if not pod.name:
        return NoRun(
            InjectionReason.NAME_NOT_KNOWN,
            "the pod's name is part of its run id, and the API server makes it up later: use name, not generateName",
        )
    return OwningRun(lone_run(pod.name, pod.labels or {}, pod.annotations or {}, now), LONE_POD)


def _missing(first: ObjectReference, owners: tuple[Object, ...]) -> ObjectReference | None:
    """Name the owner at which the walk ended though there is one more above; None for a walk to the top."""
    if not owners or owners[0]["metadata"].get("uid") != first.uid:
        return first
    above = ObjectReference.to_controller(owners[-1]["metadata"], first.namespace)
    return above if above and above.counts else None
