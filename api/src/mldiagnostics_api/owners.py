"""The walk from a pod to what it belongs to; an owner counts only if its uid is the one that the reference names."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Self

from mldiagnostics_api.workloads import Object, workload_of

_MAX_DEPTH: Final = 10


@dataclass(frozen=True, slots=True, order=True)
class Reference:
    """Names one object, and which incarnation of it."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

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


Lookup = Callable[[Reference], Object | None]
"""From a reference to the object of that kind and name, whatever its uid; None if there is none."""


def owner_chain(first: Reference | None, lookup: Lookup) -> tuple[Object, ...]:
    """Walk up from a pod's controller and return the owners, nearest first.

    Ends at an owner of a kind that does not count, one that does not exist, one whose uid differs, and at a cycle.
    """
    chain: list[Object] = []
    seen: set[str] = set()
    reference = first
    while reference and reference.counts and reference.uid not in seen and len(chain) < _MAX_DEPTH:
        owner = lookup(reference)
        if owner is None or owner["metadata"].get("uid") != reference.uid:
            break
        seen.add(reference.uid)
        chain.append(_typed(owner, reference))
        reference = Reference.to_controller(owner["metadata"], reference.namespace)
    return tuple(chain)


def missing_owners(first: Iterable[Reference | None], known: Mapping[Reference, Object | None]) -> frozenset[Reference]:
    """List the owners that have to be fetched before every chain can be walked to its end.

    Fetch them, add them to `known` (None for what does not exist), and ask again until nothing is missing. Metadata
    alone is enough.
    """
    missing: set[Reference] = set()

    def lookup(reference: Reference) -> Object | None:
        if reference not in known:
            missing.add(reference)
        return known.get(reference)

    for reference in set(first):
        owner_chain(reference, lookup)
    return frozenset(missing)


@dataclass(frozen=True, slots=True)
class Run:
    """What a pod belongs to: the topmost machine-learning owner; `group` is the CronJob above it."""

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


def run_of(chain: tuple[Object, ...]) -> Run | None:
    """Pick the run out of a chain of owners: the topmost that can be one. A CronJob never is, it groups its Jobs."""
    for owner in reversed(chain):
        if owner["kind"] != "Pod":
            above = Reference.to_controller(owner["metadata"], "")
            return Run(owner, above.name if above and above.groups else None)
    return None


def _typed(owner: Object, reference: Reference) -> Object:
    """Say what the object is: items of a list come without kind, mere metadata comes as PartialObjectMetadata."""
    return {**owner, "apiVersion": reference.api_version, "kind": reference.kind}
