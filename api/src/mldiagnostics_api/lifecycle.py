"""The life of a workload by its own spec and status, one reader for each kind.

A reader never fails: fields of an unexpected type count as absent, because any controller may write them.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from mldiagnostics_api.names import MLRunPhase
from mldiagnostics_api.workloads import Object, WorkloadKind

MAX_COUNT: Final = 2**31 - 1
MAX_TEXT: Final = 1024
MAX_REASON: Final = 128

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
QUEUE_GATE: Final = "kueue.x-k8s.io/admission"

_Map = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The state of a workload, without the history that the run adds."""

    phase: MLRunPhase = MLRunPhase.PENDING
    reason: str = "Created"
    message: str = ""
    attempt: int = 0
    """Number of the attempt, from 0, by the controller's own count."""
    suspended: bool = False
    """Whether a queue or a user holds the workload back."""
    queue: str = ""
    """Kueue's LocalQueue; empty without one."""
    admitted: bool | None = True
    """Whether no queue holds it back; None if only its pods show that."""
    hosts: int | None = None
    """Number of pods of the workload by its spec; None if another object decides it."""
    started: datetime | None = None
    ended: datetime | None = None
    endless: bool = False
    """Whether its kind never completes, so that deletion is its usual end."""


def lifecycle(kind: WorkloadKind, workload: Object) -> Lifecycle:
    """Return the state of a workload by its own spec and status.

    Args:
        kind: Table entry of the workload's kind; not one that only groups runs.
        workload: The object; metadata may lack everything but labels.
    """
    spec, status = _map(workload.get("spec")), _map(workload.get("status"))
    state = _READERS[kind.kind](spec, status)
    queue = _text(_map(_map(workload.get("metadata")).get("labels")).get(QUEUE_LABEL))
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


def _jobset(spec: _Map, status: _Map) -> Lifecycle:
    parts = _maps(spec.get("replicatedJobs"))
    hosts = sum(_count(part.get("replicas"), 1) * _job_pods(_path(part, "template", "spec")) for part in parts)
    restarts = _count(status.get("restarts"))
    started = any(_any(each, "ready", "succeeded", "failed") for each in _maps(status.get("replicatedJobsStatus")))
    limit = _count(_map(spec.get("failurePolicy")).get("maxRestarts"))
    again = f"the JobSet restarted its Jobs, restart {restarts}" + (f" of at most {limit}" if limit else "")
    return _by_conditions(
        status,
        Lifecycle(
            phase=_phase(started),
            attempt=restarts,
            suspended=spec.get("suspend") is True,
            hosts=_bounded(hosts),
            reason="Restarted" if restarts else "",
            message=again if restarts else "",
        ),
        completed="Completed",
    )


def _job(spec: _Map, status: _Map) -> Lifecycle:
    hosts, failed = _job_pods(spec), _count(status.get("failed"))
    state = _by_conditions(
        status,
        Lifecycle(
            phase=_phase(_any(status, "ready", "succeeded", "failed")),
            suspended=spec.get("suspend") is True,
            hosts=hosts,
            started=_time(status.get("startTime")),
            reason="PodsFailed" if failed else "",
            message=f"{failed} pods of the Job failed and were replaced" if failed else "",
        ),
        completed="Complete",
    )
    # With one pod, each pod that replaces a failed one is a new attempt of the whole program.
    tries = failed - 1 if state.phase is MLRunPhase.FAILED else failed
    ended = _time(status.get("completionTime")) or state.ended
    return replace(state, attempt=_bounded(max(tries, 0)) if hosts == 1 else 0, ended=ended)


def _leader_worker_set(spec: _Map, status: _Map) -> Lifecycle:
    hosts = _count(spec.get("replicas"), 1) * _count(_map(spec.get("leaderWorkerTemplate")).get("size"), 1)
    return Lifecycle(phase=_phase(_any(status, "readyReplicas")), hosts=_bounded(hosts), endless=True)


def _scaled_set(spec: _Map, status: _Map) -> Lifecycle:
    ready = _any(status, "readyReplicas")
    return Lifecycle(phase=_phase(ready), hosts=_count(spec.get("replicas"), 1), endless=True)


def _rayjob(spec: _Map, status: _Map) -> Lifecycle:
    deployment, job = _text(status.get("jobDeploymentStatus")), _text(status.get("jobStatus"))
    failed, message = _count(status.get("failed")), _text(status.get("message"))
    retrying = failed > 0 or deployment == "Retrying"
    state = Lifecycle(
        phase=_phase(deployment == "Running" or job == "RUNNING"),
        attempt=failed,
        suspended=spec.get("suspend") is True or deployment in ("Suspended", "Suspending"),
        hosts=_ray_hosts(_map(spec.get("rayClusterSpec"))) if "rayClusterSpec" in spec else None,
        started=_time(status.get("startTime")),
        reason="Retrying" if retrying else "",
        message=f"KubeRay started a new cluster after {failed} failed attempts" if retrying else "",
    )
    ended = _time(status.get("endTime"))
    if job == "SUCCEEDED":
        done = message or "the Ray job succeeded"
        return replace(state, phase=MLRunPhase.COMPLETED, reason="Succeeded", message=done, ended=ended)
    # A failed job that KubeRay retries has the job status FAILED too, but not yet the deployment status.
    if job == "STOPPED" or deployment in ("Failed", "ValidationFailed", "Complete"):
        reason = _text(status.get("reason")) or (deployment if deployment == "ValidationFailed" else "")
        return replace(
            state,
            phase=MLRunPhase.FAILED,
            attempt=max(failed - 1, 0),
            reason=reason or ("Stopped" if job == "STOPPED" else "Failed"),
            message=message or f"the Ray job ended with status {job or deployment}",
            ended=ended,
        )
    return state


def _raycluster(spec: _Map, status: _Map) -> Lifecycle:
    ready = status.get("state") == "ready" or bool(_true(status) & {"HeadPodReady", "RayClusterProvisioned"})
    return Lifecycle(phase=_phase(ready), suspended=spec.get("suspend") is True, hosts=_ray_hosts(spec), endless=True)


def _rayservice(spec: _Map, status: _Map) -> Lifecycle:
    ready = status.get("serviceStatus") == "Running" or "Ready" in _true(status)
    return Lifecycle(phase=_phase(ready), hosts=_ray_hosts(_map(spec.get("rayClusterConfig"))), endless=True)


def _trainjob(spec: _Map, status: _Map) -> Lifecycle:
    nodes = _map(spec.get("trainer")).get("numNodes")
    started = any(_any(each, "ready", "succeeded", "failed") for each in _maps(status.get("jobsStatus")))
    state = Lifecycle(
        phase=_phase(started),
        suspended=spec.get("suspend") is True,
        hosts=_count(nodes) if nodes is not None else None,  # else the runtime decides
    )
    return _by_conditions(status, state, completed="Complete")


def _training_job(replicas: str, *, roles: frozenset[str] = frozenset()) -> Callable[[_Map, _Map], Lifecycle]:
    """Return the reader of a job of Kubeflow's older trainers; all roles by default."""

    def read(spec: _Map, status: _Map) -> Lifecycle:
        true, as_worker = _true(status), spec.get("runLauncherAsWorker") is True
        hosts = sum(
            _count(_map(part).get("replicas"), 1)
            for role, part in _map(spec.get(replicas)).items()
            if not roles or as_worker or role in roles
        )
        restarting = "Restarting" in true
        state = Lifecycle(
            phase=_phase("Running" in true or restarting),
            suspended=_map(spec.get("runPolicy")).get("suspend") is True,
            hosts=_bounded(hosts),
            started=_time(status.get("startTime")),
            reason="Restarting" if restarting else "",
            message="its controller restarts pods" if restarting else "",
        )
        ended = _by_conditions(status, state, completed="Succeeded")
        return replace(ended, ended=_time(status.get("completionTime")) or ended.ended)

    return read


def _pathwaysjob(spec: _Map, status: _Map) -> Lifecycle:
    # Only the controller's pod runs the program; the workers belong to Pathways.
    condition = _map(status.get("condition"))
    terminal = _text(status.get("terminalState"))
    type_ = {"Complete": "Completed"}.get(terminal, terminal) or _text(condition.get("type"))
    state = Lifecycle(
        phase=_phase(type_ == "PendingOrRunning"),
        attempt=_count(status.get("restarts")),
        suspended=spec.get("suspend") is True or type_ == "Suspended",
        hosts=1,
    )
    conditions = [*_maps(status.get("conditions")), {"status": "True", **condition, "type": type_}]
    return _by_conditions({"conditions": conditions}, state, completed="Completed")


def _pod(spec: _Map, status: _Map) -> Lifecycle:
    phase = _text(status.get("phase"))
    gates = {_text(gate.get("name")) for gate in _maps(spec.get("schedulingGates"))}
    state = Lifecycle(
        phase=_phase(phase == "Running"),
        suspended=QUEUE_GATE in gates,
        hosts=1,
        started=_time(status.get("startTime")),
    )
    if phase not in ("Succeeded", "Failed"):
        return state
    exits = [_path(each, "state", "terminated") for each in _maps(status.get("containerStatuses"))]
    ended = max((moment for each in exits if (moment := _time(each.get("finishedAt")))), default=None)
    if phase == "Succeeded":
        return replace(
            state, phase=MLRunPhase.COMPLETED, reason="Succeeded", message="all containers succeeded", ended=ended
        )
    broken = next((each for each in exits if each.get("exitCode")), {})
    reason = _text(status.get("reason")) or _text(broken.get("reason")) or "Failed"
    message = _text(status.get("message")) or f"a container ended with exit code {_count(broken.get('exitCode'))}"
    return replace(state, phase=MLRunPhase.FAILED, reason=reason, message=message, ended=ended)


_READERS: Final[Mapping[str, Callable[[_Map, _Map], Lifecycle]]] = {
    "JobSet": _jobset,
    "Job": _job,
    "LeaderWorkerSet": _leader_worker_set,
    "RayJob": _rayjob,
    "RayCluster": _raycluster,
    "RayService": _rayservice,
    "StatefulSet": _scaled_set,
    "Deployment": _scaled_set,
    "ReplicaSet": _scaled_set,
    "TrainJob": _trainjob,
    "PyTorchJob": _training_job("pytorchReplicaSpecs"),
    "JAXJob": _training_job("jaxReplicaSpecs"),
    "MPIJob": _training_job("mpiReplicaSpecs", roles=frozenset({"Worker"})),
    "PathwaysJob": _pathwaysjob,
    "Pod": _pod,
}
_GATED: Final = frozenset({"LeaderWorkerSet", "StatefulSet", "Deployment", "ReplicaSet"})
"""Kinds that Kueue holds back by a gate on their pods."""


def _by_conditions(status: _Map, state: Lifecycle, *, completed: str) -> Lifecycle:
    """Return the final state if a condition says so, else `state`."""
    for condition in _maps(status.get("conditions")):
        type_ = _text(condition.get("type"))
        if condition.get("status") == "True" and type_ in (completed, "Failed"):
            phase = MLRunPhase.FAILED if type_ == "Failed" else MLRunPhase.COMPLETED
            return replace(
                state,
                phase=phase,
                reason=_text(condition.get("reason")) or type_,
                message=_text(condition.get("message")),
                ended=_time(condition.get("lastTransitionTime")),
            )
    return state


def _phase(started: bool) -> MLRunPhase:
    return MLRunPhase.ACTIVE if started else MLRunPhase.PENDING


def _true(status: _Map) -> set[str]:
    """Return the types of the conditions that hold."""
    return {_text(each.get("type")) for each in _maps(status.get("conditions")) if each.get("status") == "True"}


def _job_pods(spec: _Map) -> int:
    parallel, completions = _count(spec.get("parallelism"), 1), spec.get("completions")
    return parallel if completions is None else min(parallel, _count(completions, 1))


def _ray_hosts(spec: _Map) -> int:
    """Return the pods of a Ray cluster: the head, and the hosts of all replicas."""
    groups = _maps(spec.get("workerGroupSpecs"))
    running = (group for group in groups if group.get("suspend") is not True)
    return _bounded(1 + sum(_count(group.get("replicas")) * _count(group.get("numOfHosts"), 1) for group in running))


def _any(status: _Map, *counts: str) -> bool:
    return any(_count(status.get(name)) for name in counts)


def _path(value: Any, *keys: str) -> _Map:
    for key in keys:
        value = _map(value).get(key)
    return _map(value)


def _map(value: Any) -> _Map:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> Iterable[_Map]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any, default: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        return default
    return _bounded(value)


def _bounded(count: int) -> int:
    return min(max(count, 0), MAX_COUNT)


def _time(value: Any) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None
