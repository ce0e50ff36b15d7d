"""The walk from a pod up its owners; an owner counts only with the referenced uid."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from mldiagnostics_api.names import RUN_CREATED_ANNOTATION
from mldiagnostics_api.workloads.kinds import LWS, Object, kept_labels, workload_of

MAX_SKEW: Final = timedelta(seconds=60)
"""Largest difference between the clocks of webhook and API server."""

_MAX_DEPTH: Final = 10
_LONGEST: Final = 512
_POD: Final = "Pod"
_LWS_API_VERSION: Final = "leaderworkerset.x-k8s.io/v1"


@dataclass(frozen=True, slots=True, order=True)
class ObjectReference:
    """A reference to one object by name and uid."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    """Empty if only a label names the object."""

    @classmethod
    def to_controller(cls, metadata: Object, namespace: str) -> Self | None:
        """Return the controlling owner in an object's metadata, or None."""
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller"):
                # The API server does not bound these; no object has a name or uid that is cut here.
                api_version, kind, name, uid = (owner[key][:_LONGEST] for key in ("apiVersion", "kind", "name", "uid"))
                return cls(api_version, kind, namespace, name, uid)
        return None

    @property
    def can_belong_to_run(self) -> bool:
        """Whether an owner of this kind can belong to a run; other kinds are not read."""
        workload = workload_of(self.kind, self.api_version)
        return workload is not None and not workload.groups

    @property
    def is_group(self) -> bool:
        """Whether the kind groups runs."""
        workload = workload_of(self.kind, self.api_version)
        return workload is not None and workload.groups


Lookup = Callable[[ObjectReference], Object | None]
"""Returns the object of that kind and name with any uid; None if there is no such object."""


def owner_chain(first: ObjectReference | None, lookup: Lookup, *, pods: bool = True) -> tuple[Object, ...]:
    """Walk up from a pod's controller and return the owners, nearest first.

    The walk ends at an owner of an unsupported kind, one that does not exist or has another uid, and at a cycle.

    Args:
        first: Controller of the pod.
        lookup: Finds an object.
        pods: Whether pods may be looked up. The workers of a LeaderWorkerSet are owned by their leader, which is a
            pod; without pods, the label on their StatefulSet names the LeaderWorkerSet. It counts only if it is
            older than the StatefulSet.
    """
    chain: list[Object] = []
    seen: set[str] = set()
    reference = first if pods or first is None or first.kind != _POD else None
    while reference and reference.can_belong_to_run and reference.uid not in seen and len(chain) < _MAX_DEPTH:
        owner = lookup(reference)
        if owner is None or not _is_referenced(owner, reference, chain):
            break
        seen.add(owner["metadata"]["uid"])
        chain.append(_typed(owner, reference))
        reference = _above(owner["metadata"], reference.namespace, pods=pods)
    return tuple(chain)


def missing_owners(
    first: Iterable[ObjectReference | None], known: Mapping[ObjectReference, Object | None], *, pods: bool = True
) -> frozenset[ObjectReference]:
    """Return the owners to fetch before every chain can be walked to its end.

    Fetch them, add them to `known`, and call again until the result is empty.

    Args:
        first: Controllers of the pods.
        known: Objects by reference, metadata is enough; None for one that does not exist.
        pods: As in `owner_chain`.
    """
    missing: set[ObjectReference] = set()

    def lookup(reference: ObjectReference) -> Object | None:
        if reference not in known:
            missing.add(reference)
        return known.get(reference)

    for reference in set(first):
        owner_chain(reference, lookup, pods=pods)
    return frozenset(missing)


def reduced(owner: Object) -> Object:
    """Return the fields of an owner that plans need; the others may be large."""
    metadata, spec = owner["metadata"], owner.get("spec") or {}
    kept = {key: metadata[key] for key in ("name", "namespace", "uid", "creationTimestamp") if key in metadata}
    references = [reference for reference in metadata.get("ownerReferences") or () if reference.get("controller")]
    return {
        "metadata": {**kept, "labels": kept_labels(metadata), "ownerReferences": references[:1]},
        "spec": {key: spec[key] for key in ("completionMode", "completions", "manualSelector") if key in spec}
        | ({"replicatedJobs": _replicas(spec["replicatedJobs"])} if "replicatedJobs" in spec else {}),
    }


def _replicas(replicated: Iterable[Object]) -> dict[str, int]:
    """Return the number of Jobs of each replicated job of a JobSet."""
    return {str(job["name"]): int(job.get("replicas", 1)) for job in replicated}


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """The topmost owner of a pod that can be a run."""

    workload: Object
    group: str | None = None
    """Name of the CronJob or RayCronJob above it."""

    @property
    def kind(self) -> str:
        """Kind of the workload."""
        return str(self.workload["kind"])

    @property
    def name(self) -> str:
        """Name of the workload."""
        return str(self.workload["metadata"]["name"])

    @property
    def uid(self) -> str:
        """Uid of the workload."""
        return str(self.workload["metadata"]["uid"])


def run_of(chain: tuple[Object, ...]) -> WorkloadRun | None:
    """Return the run in a chain of owners: the topmost one that is not a pod.

    A CronJob is never a run; it groups the runs of its Jobs.
    """
    for owner in reversed(chain):
        if owner["kind"] != "Pod":
            above = ObjectReference.to_controller(owner["metadata"], "")
            return WorkloadRun(owner, above.name if above and above.is_group else None)
    return None


def missing_whole(first: ObjectReference | None, chain: tuple[Object, ...]) -> ObjectReference | None:
    """Return the owner above a chain that does not exist; None if it is whole.

    What is left of a deleted workload is not a run of its own: the garbage collector removes it next.

    Args:
        first: Controller at which the chain began.
        chain: Result of `owner_chain`.
    """
    above = ObjectReference.to_controller(chain[-1]["metadata"], first.namespace) if chain and first else first
    return above if above is not None and above.can_belong_to_run else None


def lone_run(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], around: datetime, *, uid: str = ""
) -> WorkloadRun:
    """Return the run of a pod without a controller: the pod itself.

    The creation time is not known during admission, so the webhook writes the time of admission as an annotation, and
    the run id uses that from then on.

    Args:
        name: Name of the pod.
        labels: Labels of the pod.
        annotations: Annotations of the pod.
        around: Current time during admission, creation time later. An annotation that differs from it by more than
            `MAX_SKEW` was not written for this pod and is ignored.
        uid: Uid of the pod; empty during admission.
    """
    stated = _parse_time(annotations.get(RUN_CREATED_ANNOTATION, ""))
    is_valid = stated is not None and abs(stated - around) <= MAX_SKEW
    created = (stated if stated and is_valid else around).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": name, "uid": uid, "labels": labels, "creationTimestamp": created}
    return WorkloadRun({"apiVersion": "v1", "kind": _POD, "metadata": metadata})


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if text.endswith("Z") else None
    except ValueError:
        return None


def _above(metadata: Object, namespace: str, *, pods: bool) -> ObjectReference | None:
    reference = ObjectReference.to_controller(metadata, namespace)
    if pods or reference is None or reference.kind != _POD:
        return reference
    name = (metadata.get("labels") or {}).get(f"{LWS}/name")
    return ObjectReference(_LWS_API_VERSION, "LeaderWorkerSet", namespace, name, uid="") if name else None


def _is_referenced(owner: Object, reference: ObjectReference, below: list[Object]) -> bool:
    metadata = owner["metadata"]
    if reference.uid:
        return bool(metadata.get("uid") == reference.uid)
    # Only a label names it: an owner younger than its part is another object of the same name.
    return bool(below and metadata["creationTimestamp"] <= below[-1]["metadata"]["creationTimestamp"])


def _typed(owner: Object, reference: ObjectReference) -> Object:
    """Set the kind: items of a list have none, metadata has PartialObjectMetadata."""
    return {**owner, "apiVersion": reference.api_version, "kind": reference.kind}
