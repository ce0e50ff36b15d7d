"""The walk from a pod to what it belongs to; an owner counts only if its uid is the one that the reference names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Self

from mldiagnostics_api.names import RUN_CREATED_ANNOTATION
from mldiagnostics_api.workloads import LWS, Object, workload_of

MAX_SKEW: Final = timedelta(seconds=60)
"""How far apart the clocks of webhook and API server may be."""

_MAX_DEPTH: Final = 10
_POD: Final = "Pod"
_LWS_API_VERSION: Final = "leaderworkerset.x-k8s.io/v1"


@dataclass(frozen=True, slots=True, order=True)
class ObjectReference:
    """Names one object, and which incarnation of it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    """Empty where only a label names the object."""

    @classmethod
    def to_controller(cls, metadata: Object, namespace: str) -> Self | None:
        """Read the controlling owner out of an object's metadata; None without one."""
        for owner in metadata.get("ownerReferences") or ():
            if owner.get("controller"):
                return cls(owner["apiVersion"], owner["kind"], namespace, owner["name"], owner["uid"])
        return None

    @property
    def counts(self) -> bool:
        """Whether an owner of this kind can belong to a run; others are neither read nor counted."""
        workload = workload_of(self.kind, self.api_version)
        return workload is not None and not workload.groups

    @property
    def groups(self) -> bool:
        """Whether the kind groups runs."""
        workload = workload_of(self.kind, self.api_version)
        return workload is not None and workload.groups


Lookup = Callable[[ObjectReference], Object | None]
"""From a reference to the object of that kind and name, whatever its uid; None if there is none."""


def owner_chain(first: ObjectReference | None, lookup: Lookup, *, pods: bool = True) -> tuple[Object, ...]:
    """Walk up from a pod's controller and return the owners, nearest first.

    Ends at an owner of a kind that does not count, one that does not exist, one whose uid differs, and at a cycle.
    With `pods=False` no pod is asked for. Between the workers of a LeaderWorkerSet and itself there is one, their
    leader; the label on the leader's StatefulSet then names the set, which counts only if it is the older one.
    """
    chain: list[Object] = []
    seen: set[str] = set()
    reference = first if pods or first is None or first.kind != _POD else None
    while reference and reference.counts and reference.uid not in seen and len(chain) < _MAX_DEPTH:
        owner = lookup(reference)
        if owner is None or not _is_meant(owner, reference, chain):
            break
        seen.add(owner["metadata"]["uid"])
        chain.append(_typed(owner, reference))
        reference = _above(owner["metadata"], reference.namespace, pods=pods)
    return tuple(chain)


def missing_owners(
    first: Iterable[ObjectReference | None], known: Mapping[ObjectReference, Object | None], *, pods: bool = True
) -> frozenset[ObjectReference]:
    """List the owners that have to be fetched before every chain can be walked to its end.

    Fetch them, add them to `known` (None for what does not exist), and ask again until nothing is missing. Metadata
    alone is enough. `pods` as in `owner_chain`.
    """
    missing: set[ObjectReference] = set()

    def lookup(reference: ObjectReference) -> Object | None:
        if reference not in known:
            missing.add(reference)
        return known.get(reference)

    for reference in set(first):
        owner_chain(reference, lookup, pods=pods)
    return frozenset(missing)


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """What a pod belongs to: the topmost machine-learning owner; `group` is the CronJob or RayCronJob above it."""

    workload: Object
    group: str | None = None

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
    """Pick the run out of a chain of owners: the topmost that can be one. A CronJob never is, it groups its Jobs."""
    for owner in reversed(chain):
        if owner["kind"] != "Pod":
            above = ObjectReference.to_controller(owner["metadata"], "")
            return WorkloadRun(owner, above.name if above and above.groups else None)
    return None


def lone_run(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], around: datetime, *, uid: str = ""
) -> WorkloadRun:
    """Take a pod that nothing controls for a run of its own.

    Its creation time is not known while it is admitted, so the webhook writes the moment of admission onto it, and that
    counts from then on. `around` is the present or, later, the creation time: a moment further from it than `MAX_SKEW`
    was not written by the webhook for this pod and does not count.
    """
    stated = _moment(annotations.get(RUN_CREATED_ANNOTATION, ""))
    near = stated is not None and abs(stated - around) <= MAX_SKEW
    created = (stated if stated and near else around).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    metadata = {"name": name, "uid": uid, "labels": labels, "creationTimestamp": created}
    return WorkloadRun({"apiVersion": "v1", "kind": _POD, "metadata": metadata})


def _moment(text: str) -> datetime | None:
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


def _is_meant(owner: Object, reference: ObjectReference, below: list[Object]) -> bool:
    metadata = owner["metadata"]
    if reference.uid:
        return bool(metadata.get("uid") == reference.uid)
    # Only a label names it: made after its part, it is another one of the same name.
    return bool(below and metadata["creationTimestamp"] <= below[-1]["metadata"]["creationTimestamp"])


def _typed(owner: Object, reference: ObjectReference) -> Object:
    """Say what the object is: items of a list come without kind, mere metadata comes as PartialObjectMetadata."""
    return {**owner, "apiVersion": reference.api_version, "kind": reference.kind}
