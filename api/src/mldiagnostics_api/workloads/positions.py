"""Whether controllers, and not only labels, give a pod its position in a workload.

Everyone who may create pods can copy the labels and the owner reference of another pod. Names are unique, and a
controller knows its own pods; so a position counts if it follows from a name, or if the controller counts the pod.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mldiagnostics_api.workloads.kinds import JOB, JOBSET, LWS, TRAINING, Object
from mldiagnostics_api.workloads.owners import ObjectReference
from mldiagnostics_api.workloads.pods import PodView
from mldiagnostics_api.workloads.ranking import position

Chain = tuple[Object, ...]

_FAMILIES: Final = {
    f"{JOBSET}/job-index": "JobSet",
    f"{LWS}/group-index": "LeaderWorkerSet",
    "ray.io/node-type": "RayCluster",
}
"""Labels that give a position, with the kind whose controller writes them."""
_CREATE_PODS: Final = frozenset(
    {"Job", "StatefulSet", "ReplicaSet", "RayCluster", "PyTorchJob", "JAXJob", "MPIJob"},
)
"""Kinds whose controllers create pods themselves, not by another object."""
_OF_JOBSET: Final = (f"{JOBSET}/job-index", f"{JOBSET}/job-global-index", f"{JOBSET}/replicatedjob-name")
_POD_HASH: Final = "pod-template-hash"


def unconfirmed(pods: Iterable[PodView], chains: Mapping[str, Chain]) -> dict[str, str]:
    """Return the pods whose position their controllers do not confirm: uid -> reason.

    Of live pods with one position, the oldest has it: the controller created it, or counts it.

    Args:
        pods: The pods.
        chains: The owners of each pod by its uid, nearest first; see `owners.owner_chain`.
    """
    faults: dict[str, str] = {}
    oldest: dict[object, PodView] = {}
    for pod in sorted(pods, key=lambda pod: (pod.created, pod.uid)):
        chain = chains[pod.uid]
        fault = next(_faults(pod, chain), None) if chain else None
        if fault is None and chain and pod.live and (key := _shared_position(pod, chain)) is not None:
            older = oldest.setdefault(key, pod)
            if older is not pod:
                fault = f"pod {older.name} has the same position in {_title(chain[0])} and is older"
        if fault is not None:
            faults[pod.uid] = fault
    return faults


def _shared_position(pod: PodView, chain: Chain) -> object:
    """Return a position that several pods can claim: their names do not have it."""
    uid = chain[0]["metadata"]["uid"]
    if chain[0]["kind"] == "Job":
        return (uid, pod.completion_index) if pod.completion_index else None
    indexed = {"ray.io/worker-group-replica-index", "ray.io/replica-host-index"} <= pod.labels.keys()
    is_head = pod.labels.get("ray.io/node-type") == "head"
    return (uid, position(pod)) if chain[0]["kind"] == "RayCluster" and (indexed or is_head) else None


def _faults(pod: PodView, chain: Chain) -> Iterator[str]:
    yield from _family_faults(pod, chain)
    if chain[0]["kind"] not in _CREATE_PODS:
        yield f"the controller of {_title(chain[0])} creates no pods itself"
    owner, above = chain[0], chain[1] if len(chain) > 1 else None
    if owner["kind"] == "Job":
        yield from _job_faults(pod, owner)
        if above is not None and above["kind"] == "JobSet":
            yield from _jobset_faults(pod, owner, above)
    elif owner["kind"] == "StatefulSet":
        yield from _stateful_set_faults(pod, owner, above)
    elif owner["kind"] == "ReplicaSet":
        yield from _label_faults(pod, owner, {_POD_HASH: _labels(owner).get(_POD_HASH)})
    elif owner["apiVersion"].startswith("kubeflow.org/"):
        role, index = (pod.labels.get(f"{TRAINING}/replica-{part}", "").lower() for part in ("type", "index"))
        yield from _name_faults(pod.name, owner, f"{role}-{index}")


def _family_faults(pod: PodView, chain: Chain) -> Iterator[str]:
    """Find labels of other kinds, and numbers that no controller writes so."""
    kinds = {owner["kind"] for owner in chain}
    top = ObjectReference.to_controller(chain[-1]["metadata"], "")
    is_complete = top is None or not top.can_belong_to_run
    for label, kind in _FAMILIES.items() if is_complete else ():
        if label in pod.labels and kind not in kinds:
            yield f"it has the label {label}, but no {kind} controls it"
    for label, value in pod.labels.items():
        if label.endswith("index") and value.isdecimal() and value != str(int(value)):
            yield f"its label {label} is '{value}', which no controller writes"


def _job_faults(pod: PodView, job: Object) -> Iterator[str]:
    spec = job.get("spec") or {}
    if not spec.get("manualSelector") and pod.labels.get(f"{JOB}/controller-uid") != job["metadata"]["uid"]:
        yield f"{_title(job)} does not select it: its label {JOB}/controller-uid is missing or has another uid"
    if "completionMode" not in spec:
        return
    indices = range(spec.get("completions") or 0) if spec["completionMode"] == "Indexed" else ()
    index = pod.completion_index
    if (index or indices) and not (index.isdecimal() and str(int(index)) == index and int(index) in indices):
        yield f"{_title(job)} has no completion index '{index}'"


def _jobset_faults(pod: PodView, job: Object, jobset: Object) -> Iterator[str]:
    labels = _labels(job)
    replicated, index = labels.get(f"{JOBSET}/replicatedjob-name", ""), labels.get(f"{JOBSET}/job-index", "")
    yield from _name_faults(job["metadata"]["name"], jobset, f"{replicated}-{index}", child=_title(job))
    replicas = (jobset.get("spec") or {}).get("replicatedJobs")
    if replicas is not None and not (index.isdecimal() and int(index) < replicas.get(replicated, 0)):
        yield f"{_title(jobset)} has no job {replicated}-{index}"
    yield from _label_faults(pod, job, {label: labels.get(label) for label in _OF_JOBSET})


def _stateful_set_faults(pod: PodView, owner: Object, above: Object | None) -> Iterator[str]:
    name, tail = owner["metadata"]["name"], pod.name.rpartition("-")[2]
    ordinal = str(int(tail)) if tail.isdecimal() else "0"
    yield from _name_faults(pod.name, owner, ordinal)
    expected = {"apps.kubernetes.io/pod-index": pod.labels.get("apps.kubernetes.io/pod-index") and ordinal}
    if above is not None and above["kind"] == "LeaderWorkerSet":
        yield from _name_faults(name, above, "", child=_title(owner))
        expected |= {f"{LWS}/group-index": ordinal, f"{LWS}/worker-index": "0"}
    elif above is not None and above["kind"] == "Pod":
        yield from _name_faults(name, above, "", child=_title(owner))
        expected |= {f"{LWS}/group-index": name.rpartition("-")[2], f"{LWS}/worker-index": ordinal}
    yield from _label_faults(pod, owner, expected)


def _name_faults(name: str, owner: Object, suffix: str, *, child: str = "it") -> Iterator[str]:
    expected = f"{owner['metadata']['name']}-{suffix}".rstrip("-")
    if name != expected:
        yield f"the controller of {_title(owner)} did not create {child}: the name would be {expected}"


def _label_faults(pod: PodView, owner: Object, expected: Mapping[str, str | None]) -> Iterator[str]:
    for label, value in expected.items():
        if value is not None and pod.labels.get(label) != value:
            yield f"its label {label} is not '{value}' as {_title(owner)} requires"


def _labels(owner: Object) -> Mapping[str, str]:
    return owner["metadata"].get("labels") or {}


def _title(owner: Object) -> str:
    return f"{owner['kind']} {owner['metadata']['name']}"
