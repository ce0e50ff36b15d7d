"""The kinds of KubeRay."""

from dataclasses import replace

from mldiagnostics_api.lifecycle.fields import Fields, bounded, count, mapping, mappings, text, time, true_conditions
from mldiagnostics_api.lifecycle.model import Lifecycle, phase_of
from mldiagnostics_api.names import MLRunPhase


def rayjob(spec: Fields, status: Fields) -> Lifecycle:
    """Read a RayJob."""
    deployment, job = text(status.get("jobDeploymentStatus")), text(status.get("jobStatus"))
    failed, message = count(status.get("failed")), text(status.get("message"))
    retrying = failed > 0 or deployment == "Retrying"
    limit = count(spec.get("backoffLimit"))
    again = f"KubeRay retries with a new cluster, retry {failed}" + (f" of at most {limit}" if limit else "")
    # Only in between the message is that of the failed attempt.
    why = f": {message}" if deployment == "Retrying" and message else ""
    state = Lifecycle(
        phase=phase_of(deployment == "Running" or job == "RUNNING"),
        attempt=failed,
        suspended=spec.get("suspend") is True or deployment in ("Suspended", "Suspending"),
        hosts=_ray_hosts(mapping(spec.get("rayClusterSpec"))) if "rayClusterSpec" in spec else None,
        started=time(status.get("startTime")),
        reason="Retrying" if retrying else "",
        message=again + why if retrying else "",
    )
    ended = time(status.get("endTime"))
    if job == "SUCCEEDED":
        done = message or "the Ray job succeeded"
        return replace(state, phase=MLRunPhase.COMPLETED, reason="Succeeded", message=done, ended=ended)
    # A failed job that KubeRay retries has the job status FAILED too, but not yet the deployment status.
    if job == "STOPPED" or deployment in ("Failed", "ValidationFailed", "Complete"):
        reason = text(status.get("reason")) or (deployment if deployment == "ValidationFailed" else "")
        return replace(
            state,
            phase=MLRunPhase.FAILED,
            attempt=max(failed - 1, 0),
            reason=reason or ("Stopped" if job == "STOPPED" else "Failed"),
            message=message or f"the Ray job ended with status {job or deployment}",
            ended=ended,
        )
    return state


def raycluster(spec: Fields, status: Fields) -> Lifecycle:
    """Read a RayCluster."""
    ready = status.get("state") == "ready" or bool(true_conditions(status) & {"HeadPodReady", "RayClusterProvisioned"})
    return Lifecycle(phase=phase_of(ready), suspended=spec.get("suspend") is True, hosts=_ray_hosts(spec), endless=True)


def rayservice(spec: Fields, status: Fields) -> Lifecycle:
    """Read a RayService."""
    ready = status.get("serviceStatus") == "Running" or "Ready" in true_conditions(status)
    return Lifecycle(phase=phase_of(ready), hosts=_ray_hosts(mapping(spec.get("rayClusterConfig"))), endless=True)


def _ray_hosts(spec: Fields) -> int:
    """Return the pods of a Ray cluster: the head, and the hosts of all replicas."""
    groups = mappings(spec.get("workerGroupSpecs"))
    running = (group for group in groups if group.get("suspend") is not True)
    return bounded(1 + sum(count(group.get("replicas")) * count(group.get("numOfHosts"), 1) for group in running))
