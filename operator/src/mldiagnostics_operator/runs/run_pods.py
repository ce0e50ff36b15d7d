"""The pods of runs, by their label, and the evidence that they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.disruptions import DisruptionCause, pod_evidence
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.pods import FINISHED_PHASES
from mldiagnostics_api.startup import PodStartup
from mldiagnostics_api.workloads import JOBSET
from mldiagnostics_kube.object_store import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mldiagnostics_api.disruptions import Evidence

MAX_PODS: Final = 100_000
"""Pods in memory, of all runs; one takes about 1 KiB."""
MAX_EVIDENCE: Final = 256
"""Items of evidence of one run; further ones are of hosts that end with those before."""
MAX_ENDED: Final = 8
"""Ended pods of a run whose node and events are read: the others end because of them."""
_ON_A_WORKING_NODE: Final = frozenset(
    {
        DisruptionCause.OUT_OF_MEMORY,
        DisruptionCause.EXIT_CODE,
        DisruptionCause.START_FAILURE,
        DisruptionCause.SCHEDULING,
    }
)
_ATTEMPT: Final = f"{JOBSET}/restart-attempt"

LabelKey = tuple[str, str]
"""Namespace, and value of the label of a run."""


@dataclass(frozen=True, slots=True)
class EndedPod:
    """A pod that ended, with the node whose state may explain it."""

    uid: str
    node: str
    """Empty if a kubelet that works reported the failure of a container."""


@dataclass(frozen=True, slots=True)
class RunPod:
    """A pod of a run, reduced to its start-up."""

    uid: str
    live: bool
    attempt: int | None
    """The attempt that its controller gives; None without such a label."""
    startup: PodStartup


@dataclass(slots=True)
class PodsOfRun:
    """The pods of one run, and the evidence of those that ended."""

    pods: dict[str, RunPod] = field(default_factory=dict)
    """By name."""
    evidence: dict[tuple[str, str], Evidence] = field(default_factory=dict)
    """By subject and cause; the first one stays."""
    ended: dict[str, EndedPod] = field(default_factory=dict)
    """Ended pods that are to be examined, by uid."""

    def of_attempt(self, attempt: int) -> Sequence[PodStartup]:
        """Return the live pods of an attempt."""
        return [pod.startup for pod in self.pods.values() if pod.live and pod.attempt in (None, attempt)]

    def add(self, item: Evidence | None) -> bool:
        """Keep an item of evidence; return whether it is new."""
        if item is None or (item.subject, item.cause) in self.evidence or len(self.evidence) >= MAX_EVIDENCE:
            return False
        self.evidence[item.subject, item.cause] = item
        return True


class RunPodStore:
    """The store of an informer of labelled pods.

    Args:
        changed: Receives the key of a run whose pods changed; returns at once.
        ended: Receives the key of a run with a pod that ended with evidence, or was removed.
        is_followed: Returns whether a run has not ended; only its evidence outlives its pods.
    """

    def __init__(
        self,
        changed: Callable[[LabelKey], None],
        ended: Callable[[LabelKey], None],
        is_followed: Callable[[LabelKey], bool],
    ) -> None:
        self._is_followed = is_followed
        self._changed = changed
        self._ended = ended
        self._runs: dict[LabelKey, PodsOfRun] = {}
        self._labels: dict[str, LabelKey] = {}
        """By namespace and name of the pod."""
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._labels)

    def of(self, key: LabelKey) -> PodsOfRun | None:
        """Return the pods of a run; None if none was seen."""
        return self._runs.get(key)

    def forget(self, key: LabelKey) -> None:
        """Forget the evidence of a run that has ended."""
        run = self._runs.get(key)
        if run is not None and not run.pods:
            del self._runs[key]
        elif run is not None:
            run.evidence.clear()
            run.ended.clear()

    def put(self, item: Mapping[str, Any]) -> None:
        """Reduce and keep a pod."""
        metadata = item["metadata"]
        pod_key, label = key_of(item), (metadata.get("labels") or {}).get(RUN_LABEL)
        if not label:
            return
        if pod_key not in self._labels and len(self._labels) >= MAX_PODS:
            self.left_out += 1
            return
        key = metadata["namespace"], label
        self._labels[pod_key] = key
        run = self._runs.setdefault(key, PodsOfRun())
        pod = _reduced(item)
        before = run.pods.get(metadata["name"])
        run.pods[metadata["name"]] = pod
        self._examine(key, run, item)
        if before != pod:
            self._changed(key)

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget a pod that was deleted, but not why."""
        key = self._labels.get(key_of(item))
        if key is not None:
            self._examine(key, self._runs[key], item, removed=True)
            self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all pods but these; their last state was not seen."""
        for pod_key in self._labels.keys() - keys:
            self._forget(pod_key)

    def _examine(self, key: LabelKey, run: PodsOfRun, item: Mapping[str, Any], *, removed: bool = False) -> None:
        metadata = item["metadata"]
        evidence = pod_evidence(item)
        is_new = run.add(evidence)
        if (is_new or removed) and (metadata["uid"] in run.ended or len(run.ended) < MAX_ENDED):
            node = evidence.node if evidence and evidence.cause not in _ON_A_WORKING_NODE else ""
            run.ended[metadata["uid"]] = EndedPod(metadata["uid"], node)
            self._ended(key)

    def _forget(self, pod_key: str) -> None:
        key = self._labels.pop(pod_key, None)
        if key is None:
            return
        run = self._runs[key]
        run.pods.pop(pod_key.partition("/")[2], None)
        if not run.pods and not self._is_followed(key):
            del self._runs[key]
        self._changed(key)


def _reduced(pod: Mapping[str, Any]) -> RunPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    attempt = (metadata.get("labels") or {}).get(_ATTEMPT, "")
    return RunPod(
        uid=metadata["uid"],
        live=status.get("phase") not in FINISHED_PHASES and "deletionTimestamp" not in metadata,
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) < 10 else None,
        startup=PodStartup.of(pod),
    )
