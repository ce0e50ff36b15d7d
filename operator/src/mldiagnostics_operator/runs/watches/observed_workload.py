"""The parts of a workload that runs need; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.lifecycle import QUEUE_LABEL, Lifecycle, lifecycle
from mldiagnostics_api.names import OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import LONE_POD, LWS
from mldiagnostics_api.workloads.owners import ObjectReference

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics_api.workloads.kinds import WorkloadKind

_LABELS: Final = (OPT_IN_LABEL, QUEUE_LABEL, f"{LWS}/name")
_METADATA: Final = ("name", "namespace", "uid", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class ObservedWorkload:
    """A workload as a watch or a request returned it, reduced to a kilobyte."""

    kind: WorkloadKind
    metadata: Mapping[str, Any]
    """Name, namespace, uid, time of creation, some labels, annotations of a pod, and the controller."""
    state: Lifecycle | None
    """None for a pod of another workload, which only shows that workload."""
    pods: str = ""
    """Label selector of its pods; empty while there is none."""

    @property
    def uid(self) -> str:
        """Uid of the workload."""
        return str(self.metadata["uid"])

    @property
    def namespace(self) -> str:
        """Namespace of the workload."""
        return str(self.metadata["namespace"])

    @property
    def name(self) -> str:
        """Name of the workload."""
        return str(self.metadata["name"])

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels that decide about runs."""
        labels: Mapping[str, str] = self.metadata["labels"]
        return labels

    @property
    def controller(self) -> ObjectReference | None:
        """The controlling owner; None without one."""
        return ObjectReference.to_controller(self.metadata, self.namespace)


def observe(kind: WorkloadKind, body: Mapping[str, Any], *, annotations: tuple[str, ...] = ()) -> ObservedWorkload:
    """Reduce an object to the parts that runs need.

    Args:
        kind: Table entry of its kind.
        body: The object as the API returns it.
        annotations: Annotations to keep.
    """
    metadata = body["metadata"]
    labels, marks = metadata.get("labels") or {}, metadata.get("annotations") or {}
    owners = [owner for owner in metadata.get("ownerReferences") or () if owner.get("controller")]
    kept = {
        **{key: metadata[key] for key in _METADATA if key in metadata},
        "labels": {key: labels[key] for key in _LABELS if key in labels},
        "annotations": {key: marks[key] for key in annotations if key in marks},
        "ownerReferences": owners[:1],
    }
    state = None if kind is LONE_POD and owners else lifecycle(kind, body)
    return ObservedWorkload(kind, kept, state, kind.pods(body) or "")
