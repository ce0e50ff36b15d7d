"""The order of a workload's pods by rank and slice, from their labels."""

import re
from collections.abc import Callable, Iterable
from typing import Final

from mldiagnostics_api.workloads.kinds import JOBSET, LWS, TRAINING
from mldiagnostics_api.workloads.pods import PodView

Position = tuple[int | str, ...]
"""Sort key of pods of one workload; pods with the same position replace each other over time."""

_LEADING_ROLES: Final = ("master", "chief", "launcher")


def position(pod: PodView) -> Position | None:
    """Return the pod's position in its workload; None if no label gives one.

    JobSet: global job index, completion index. LeaderWorkerSet: group, worker. Ray: head first, then group, replica,
    host. Kubeflow: master first, then replica. Job: completion index. StatefulSet: ordinal. The first part is the
    family, so that positions of any two pods can be compared.
    """
    for family, (fits, read) in enumerate(_FAMILIES):
        if fits(pod):
            return (family, *read(pod))
    return None


def leads(pod: PodView) -> bool | None:
    """Return whether a pod has the first position of its workload.

    None if no label gives a position. Of Kubeflow's older jobs only a master has the first one.
    """
    parts = position(pod)
    return None if parts is None else all(part == 0 for part in parts[1:] if isinstance(part, int))


def order(pod: PodView) -> tuple[Position, Position, str]:
    """Return the sort key of pods of one workload: position, then name."""
    return (position(pod) or (len(_FAMILIES),), natural(pod.name), pod.uid)


def without_superseded(pods: Iterable[PodView]) -> list[PodView]:
    """Drop finished pods that a live pod has replaced after a restart or a retry.

    Pods replace each other if they have the same position; without a position, the same controller.
    """
    pods = list(pods)
    taken = {_position_key(pod) for pod in pods if pod.live}
    return [pod for pod in pods if pod.live or _position_key(pod) not in taken]


def _position_key(pod: PodView) -> object:
    return position(pod) or (pod.controller.uid if pod.controller else pod.uid)


def slice_of(pod: PodView) -> int | None:
    """Return the slice: job index of a JobSet, LeaderWorkerSet group or Ray replica."""
    labels = (f"{JOBSET}/job-index", f"{LWS}/group-index", "ray.io/worker-group-replica-index")
    return next((int(pod.labels[label]) for label in labels if pod.labels.get(label, "").isdecimal()), None)


def part_of(pod: PodView) -> str:
    """Return the replicated job of a JobSet or the Ray worker group, or empty."""
    return pod.labels.get(f"{JOBSET}/replicatedjob-name") or pod.labels.get("ray.io/group") or ""


def natural(name: str) -> Position:
    """Return the natural sort key of a name: `a-2` before `a-10`."""
    # Every second part is a number, so that keys can be compared part by part.
    return tuple(int(part) if part.isdecimal() else part for part in re.split(r"([0-9]+)", name))


def _number(pod: PodView, *labels: str) -> int:
    values = (pod.labels.get(label, "") for label in labels)
    return next((int(value) for value in values if value.isdecimal()), 0)


def _completion(pod: PodView) -> int:
    return int(pod.completion_index) if pod.completion_index.isdecimal() else 0


def _jobset(pod: PodView) -> Position:
    return (_number(pod, f"{JOBSET}/job-global-index", f"{JOBSET}/job-index"), part_of(pod), _completion(pod))


def _lws(pod: PodView) -> Position:
    return (_number(pod, f"{LWS}/group-index"), _number(pod, f"{LWS}/worker-index"))


def _ray(pod: PodView) -> Position:
    worker = pod.labels["ray.io/node-type"] != "head"
    replica = _number(pod, "ray.io/worker-group-replica-index")
    return (int(worker), part_of(pod), replica, _number(pod, "ray.io/replica-host-index"))


def _training(pod: PodView) -> Position:
    role = pod.labels[f"{TRAINING}/replica-type"].lower()
    leading = _LEADING_ROLES.index(role) if role in _LEADING_ROLES else len(_LEADING_ROLES)
    return (leading, role, _number(pod, f"{TRAINING}/replica-index"))


def _ordinal(pod: PodView) -> Position:
    label = pod.labels.get("apps.kubernetes.io/pod-index", "")
    return (int(label or pod.name.rpartition("-")[2]),)


def _is_ordinal(pod: PodView) -> bool:
    of_set = pod.controller is not None and pod.controller.kind == "StatefulSet"
    tail = pod.labels.get("apps.kubernetes.io/pod-index") or pod.name.rpartition("-")[2]
    return of_set and tail.isdecimal()


_FAMILIES: Final[tuple[tuple[Callable[[PodView], bool], Callable[[PodView], Position]], ...]] = (
    (lambda pod: f"{JOBSET}/job-index" in pod.labels, _jobset),
    (lambda pod: f"{LWS}/group-index" in pod.labels, _lws),
    (lambda pod: "ray.io/node-type" in pod.labels, _ray),
    (lambda pod: f"{TRAINING}/replica-type" in pod.labels, _training),
    (lambda pod: bool(pod.completion_index), lambda pod: (_completion(pod),)),
    (_is_ordinal, _ordinal),
)
