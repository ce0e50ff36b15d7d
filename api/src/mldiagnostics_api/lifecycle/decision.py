"""The state of any workload, by the reader of its kind."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from mldiagnostics_api.lifecycle import jobs, pods, ray
from mldiagnostics_api.lifecycle.fields import Fields, mapping, text
from mldiagnostics_api.lifecycle.model import Lifecycle
from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.workloads.kinds import Object, WorkloadKind

MAX_TEXT: Final = 1024
MAX_REASON: Final = 128
QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"

_READERS: Final[Mapping[str, Callable[[Fields, Fields], Lifecycle]]] = {
    "JobSet": jobs.jobset,
    "Job": jobs.job,
    "LeaderWorkerSet": pods.leader_worker_set,
    "RayJob": ray.rayjob,
    "RayCluster": ray.raycluster,
    "RayService": ray.rayservice,
    "StatefulSet": pods.scaled_set,
    "Deployment": pods.interchangeable_set,
    "ReplicaSet": pods.interchangeable_set,
    "TrainJob": jobs.trainjob,
    "PyTorchJob": jobs.training_job("pytorchReplicaSpecs"),
    "JAXJob": jobs.training_job("jaxReplicaSpecs"),
    "MPIJob": jobs.training_job("mpiReplicaSpecs", roles=frozenset({"Worker"})),
    "PathwaysJob": jobs.pathwaysjob,
    "Pod": pods.pod,
}
_GATED: Final = frozenset({"LeaderWorkerSet", "StatefulSet", "Deployment", "ReplicaSet"})
"""Kinds that Kueue holds back by a gate on their pods."""


def lifecycle(kind: WorkloadKind, workload: Object) -> Lifecycle:
    """Return the state of a workload by its own spec and status.

    Args:
        kind: Table entry of the workload's kind; not one that only groups runs.
        workload: The object; metadata may lack everything but labels.
    """
    spec, status = mapping(workload.get("spec")), mapping(workload.get("status"))
    state = _READERS[kind.kind](spec, status)
    queue = text(mapping(mapping(workload.get("metadata")).get("labels")).get(QUEUE_LABEL))
    if state.phase is MLRunPhase.PENDING and state.suspended:
        waits = f"the {kind.kind} waits in queue {queue}" if queue else f"the {kind.kind} is suspended"
        state = replace(state, admitted=False, reason="Queued" if queue else "Suspended", message=waits)
    elif state.phase is MLRunPhase.PENDING:
        unknown = bool(queue) and kind.kind in _GATED
        state = replace(
            state,
            admitted=None if unknown else True,
            reason=state.reason if state.message else "Starting",
            message=state.message or f"the {kind.kind} waits for its pods",
        )
    elif state.phase is MLRunPhase.ACTIVE:
        state = replace(
            state,
            reason=state.reason if state.message else "Running",
            message=state.message or f"the {kind.kind} runs",
        )
    return replace(
        state,
        queue=queue[:MAX_REASON],
        reason=(state.reason or str(state.phase))[:MAX_REASON],
        message=state.message[:MAX_TEXT],
    )
