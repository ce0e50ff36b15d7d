"""Sets of pods that never complete, and single pods."""

from dataclasses import replace
from typing import Final

from mldiagnostics_api.lifecycle.fields import Fields, any_count, bounded, count, mapping, mappings, path, text, time
from mldiagnostics_api.lifecycle.model import Lifecycle, phase_of
from mldiagnostics_api.names import MLRunPhase

QUEUE_GATE: Final = "kueue.x-k8s.io/admission"


def leader_worker_set(spec: Fields, status: Fields) -> Lifecycle:
    """Read a LeaderWorkerSet."""
    hosts = count(spec.get("replicas"), 1) * count(mapping(spec.get("leaderWorkerTemplate")).get("size"), 1)
    return Lifecycle(phase=phase_of(any_count(status, "readyReplicas")), hosts=bounded(hosts), endless=True)


def interchangeable_set(spec: Fields, status: Fields) -> Lifecycle:
    """Read a Deployment or ReplicaSet, whose pods have no ranks."""
    return replace(scaled_set(spec, status), independent=True)


def scaled_set(spec: Fields, status: Fields) -> Lifecycle:
    """Read a StatefulSet."""
    ready = any_count(status, "readyReplicas")
    return Lifecycle(phase=phase_of(ready), hosts=count(spec.get("replicas"), 1), endless=True)


def pod(spec: Fields, status: Fields) -> Lifecycle:
    """Read a pod without a controller."""
    phase = text(status.get("phase"))
    gates = {text(gate.get("name")) for gate in mappings(spec.get("schedulingGates"))}
    state = Lifecycle(
        phase=phase_of(phase == "Running"),
        suspended=QUEUE_GATE in gates,
        hosts=1,
        started=time(status.get("startTime")),
    )
    if phase not in ("Succeeded", "Failed"):
        return state
    exits = [path(each, "state", "terminated") for each in mappings(status.get("containerStatuses"))]
    ended = max((moment for each in exits if (moment := time(each.get("finishedAt")))), default=None)
    if phase == "Succeeded":
        return replace(
            state, phase=MLRunPhase.COMPLETED, reason="Succeeded", message="all containers succeeded", ended=ended
        )
    broken = next((each for each in exits if each.get("exitCode")), {})
    reason = text(status.get("reason")) or text(broken.get("reason")) or "Failed"
    message = text(status.get("message")) or f"a container ended with exit code {count(broken.get('exitCode'))}"
    return replace(state, phase=MLRunPhase.FAILED, reason=reason, message=message, ended=ended)
