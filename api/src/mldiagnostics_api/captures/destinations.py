"""The log directory of each pod: the requested one, or one per run."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from mldiagnostics import identity, layout

from mldiagnostics_api.captures.location import Location
from mldiagnostics_api.workloads.kinds import workload_of
from mldiagnostics_api.workloads.matching import match
from mldiagnostics_api.workloads.owners import WorkloadRun
from mldiagnostics_api.workloads.pods import PodView


@dataclass(frozen=True, slots=True)
class Destination:
    """The log directory of a pod's traces; `run_id` if the pod belongs to a run."""

    directory: Location
    run_id: str | None


def workload_key(run: WorkloadRun | None) -> str:
    """Return the key of a pod's workload; pods without a workload share the empty key."""
    return f"{run.name}/{run.uid}" if run else ""


def destinations(
    pods: Iterable[tuple[PodView, WorkloadRun | None]],
    *,
    root: Location,
    explicit: bool,
    cluster: str,
    namespace_labels: Mapping[str, str],
) -> dict[str, Destination]:
    """Return the destination of each pod, by uid.

    Args:
        pods: Pods, each with its workload.
        root: Root of the directories. A run has `<run id>` below it, another workload `<namespace>/<workload>`; pods
            without a workload share `<namespace>/<first pod>`.
        explicit: The root is the log directory itself.
        cluster: Name of the cluster.
        namespace_labels: Labels of the pods' namespace.
    """
    by_pod: dict[str, Destination] = {}
    by_workload: dict[str, Destination] = {}
    for pod, run in pods:
        key = workload_key(run)
        if key not in by_workload:
            run_id = run_id_of(run, pod, cluster=cluster, namespace_labels=namespace_labels) if run else None
            name = run.name if run else pod.name
            below = layout.run_directory(str(root), run_id=run_id, namespace=pod.namespace, workload=name)
            by_workload[key] = Destination(root if explicit else Location.parse(below), run_id)
        by_pod[pod.uid] = by_workload[key]
    return by_pod


def run_id_of(run: WorkloadRun, pod: PodView, *, cluster: str, namespace_labels: Mapping[str, str]) -> str | None:
    """Return the id of the workload's run; None if the workload is not opted in."""
    workload = workload_of(run.kind, run.workload["apiVersion"])
    metadata = run.workload["metadata"]
    if workload is None or not metadata.get("creationTimestamp"):
        return None
    matched = match(
        workload,
        labels=metadata.get("labels") or {},
        pod_labels=pod.labels,
        namespace=pod.namespace,
        namespace_labels=namespace_labels,
    )
    if not matched.opted_in:
        return None
    created = datetime.fromisoformat(metadata["creationTimestamp"])
    return identity.run_id(cluster=cluster, namespace=pod.namespace, kind=run.kind, name=run.name, created=created)


def common_directory(directories: Iterable[Location], *, root: Location) -> Location:
    """Return the common parent of the directories; the root if there are none."""
    paths = {directory.segments for directory in directories}
    if not paths:
        return root
    shared = takewhile(lambda level: len(set(level)) == 1, zip(*paths, strict=False))
    return Location(root.medium, root.bucket, tuple(level[0] for level in shared))
