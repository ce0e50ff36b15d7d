"""Jobs and the kinds that consist of them."""

from collections.abc import Callable
from dataclasses import replace

from mldiagnostics.text.counts import counted

from mldiagnostics_api.lifecycle.fields import (
    Fields,
    any_count,
    bounded,
    count,
    mapping,
    mappings,
    path,
    text,
    time,
    true_conditions,
)
from mldiagnostics_api.lifecycle.model import Lifecycle, by_conditions, phase_of
from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase


def jobset(spec: Fields, status: Fields) -> Lifecycle:
    """Read a JobSet."""
    parts = mappings(spec.get("replicatedJobs"))
    hosts = sum(count(part.get("replicas"), 1) * job_pods(path(part, "template", "spec")) for part in parts)
    restarts = count(status.get("restarts"))
    started = any(
        any_count(each, "ready", "succeeded", "failed") for each in mappings(status.get("replicatedJobsStatus"))
    )
    limit = count(mapping(spec.get("failurePolicy")).get("maxRestarts"))
    again = f"the JobSet restarted its Jobs, restart {restarts}" + (f" of at most {limit}" if limit else "")
    return by_conditions(
        status,
        Lifecycle(
            phase=phase_of(started),
            attempt=restarts,
            suspended=spec.get("suspend") is True,
            hosts=bounded(hosts),
            reason="Restarted" if restarts else "",
            message=again if restarts else "",
        ),
        completed="Completed",
    )


def job(spec: Fields, status: Fields) -> Lifecycle:
    """Read a Job."""
    hosts, failed = job_pods(spec), count(status.get("failed"))
    state = by_conditions(
        status,
        Lifecycle(
            phase=phase_of(any_count(status, "ready", "succeeded", "failed")),
            suspended=spec.get("suspend") is True,
            hosts=hosts,
            started=time(status.get("startTime")),
            reason="PodsFailed" if failed else "",
            message=f"the Job replaced {counted(failed, 'failed pod')}" if failed else "",
        ),
        completed="Complete",
    )
    failing = next((each for each in mappings(status.get("conditions")) if _is_failing(each)), None)
    is_over = failing is not None or state.phase is MLRunPhase.FAILED
    if failing is not None and state.phase not in FINISHED_RUN_PHASES:
        state = replace(state, reason=text(failing.get("reason")) or "Failing", message=text(failing.get("message")))
    # With one pod, each pod that replaces a failed one is a new attempt of the whole program; the last one is not
    # replaced.
    tries = failed - 1 if is_over else failed
    ended = time(status.get("completionTime")) or state.ended
    # At its deadline the Job counts pods as failed that never had a node.
    ran = any_count(status, "ready", "succeeded") or (failed > 0 and state.reason != "DeadlineExceeded")
    return replace(
        state,
        attempt=bounded(max(tries, 0)) if hosts == 1 else 0,
        counts_pods=hosts == 1,
        ended=ended,
        ran=ran,
        independent=hosts > 1 and spec.get("completionMode") != "Indexed",
    )


def _is_failing(condition: Fields) -> bool:
    """Return whether a condition says that a Job fails, while its pods end."""
    return condition.get("type") == "FailureTarget" and condition.get("status") == "True"


def trainjob(spec: Fields, status: Fields) -> Lifecycle:
    """Read a TrainJob."""
    nodes = mapping(spec.get("trainer")).get("numNodes")
    started = any(any_count(each, "ready", "succeeded", "failed") for each in mappings(status.get("jobsStatus")))
    state = Lifecycle(
        phase=phase_of(started),
        suspended=spec.get("suspend") is True,
        hosts=count(nodes) if nodes is not None else None,  # else the runtime decides
    )
    return by_conditions(status, state, completed="Complete")


def training_job(replicas: str, *, roles: frozenset[str] = frozenset()) -> Callable[[Fields, Fields], Lifecycle]:
    """Return the reader of a job of Kubeflow's older trainers; all roles by default."""

    def read(spec: Fields, status: Fields) -> Lifecycle:
        true, as_worker = true_conditions(status), spec.get("runLauncherAsWorker") is True
        hosts = sum(
            count(mapping(part).get("replicas"), 1)
            for role, part in mapping(spec.get(replicas)).items()
            if not roles or as_worker or role in roles
        )
        restarting = "Restarting" in true
        state = Lifecycle(
            phase=phase_of("Running" in true or restarting),
            suspended=mapping(spec.get("runPolicy")).get("suspend") is True,
            hosts=bounded(hosts),
            started=time(status.get("startTime")),
            reason="Restarting" if restarting else "",
            message="its controller restarts pods" if restarting else "",
        )
        ended = by_conditions(status, state, completed="Succeeded")
        return replace(ended, ended=time(status.get("completionTime")) or ended.ended)

    return read


def pathwaysjob(spec: Fields, status: Fields) -> Lifecycle:
    """Read a PathwaysJob."""
    # Only the controller's pod runs the program; the workers belong to Pathways.
    condition = mapping(status.get("condition"))
    terminal = text(status.get("terminalState"))
    type_ = {"Complete": "Completed"}.get(terminal, terminal) or text(condition.get("type"))
    state = Lifecycle(
        phase=phase_of(type_ == "PendingOrRunning"),
        attempt=count(status.get("restarts")),
        suspended=spec.get("suspend") is True or type_ == "Suspended",
        hosts=1,
    )
    conditions = [*mappings(status.get("conditions")), {"status": "True", **condition, "type": type_}]
    return by_conditions({"conditions": conditions}, state, completed="Completed")


def job_pods(spec: Fields) -> int:
    """Return the number of pods of a Job by its spec."""
    parallel, completions = count(spec.get("parallelism"), 1), spec.get("completions")
    return parallel if completions is None else min(parallel, count(completions, 1))
