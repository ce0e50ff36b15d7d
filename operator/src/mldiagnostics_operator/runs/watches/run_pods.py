"""The pods of runs, and the evidence that they leave."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.disruptions import DisruptionCause, pod_evidence
from mldiagnostics_api.lifecycle.program import PodProgram
from mldiagnostics_api.lifecycle.startup import PodStartup
from mldiagnostics_api.names import RUN_LABEL
from mldiagnostics_api.workloads.kinds import JOBSET
from mldiagnostics_api.workloads.pods import FINISHED_PHASES, PodView
from mldiagnostics_api.workloads.ranking import leads
from mldiagnostics_kube.cache.object_store import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from mldiagnostics_api.disruptions import Evidence

    from mldiagnostics_operator.control_plane.identity.deleted_pods import DeletedPods

MAX_PODS: Final = 100_000
"""Pods in memory, of all runs; one takes about 1 KiB."""
MAX_EVIDENCE: Final = 256
"""Items of evidence of one run; further ones are of hosts that end with those before."""
MAX_ENDED: Final = 8
"""Ended pods of a run whose node and events are read: the others end because of them."""
_OF_CONTAINERS: Final = frozenset({DisruptionCause.OUT_OF_MEMORY, DisruptionCause.EXIT_CODE})
"""Causes that a pod has again and again, with restarts in place."""
_ON_A_WORKING_NODE: Final = frozenset(
    {
        DisruptionCause.OUT_OF_MEMORY,
        DisruptionCause.EXIT_CODE,
        DisruptionCause.START_FAILURE,
        DisruptionCause.SCHEDULING,
    }
)
_ATTEMPT: Final = f"{JOBSET}/restart-attempt"

MAX_FAILURES: Final = 8
"""Items of evidence of one pod and one cause: a container that is restarted in place fails again and again."""
MAX_GONE: Final = 1024
"""Ended pods of a run whose processes do not count as hosts; the reports of older ones are silent by then."""
MAX_PULLS: Final = 8
"""Pods of a run whose events of pulls are read: those that started last."""

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
    program: PodProgram | None = None
    restarts: int = 0
    """Restarts of all its containers."""
    leads: bool | None = None
    """Whether it has the first position of its workload; None without positions."""


@dataclass(slots=True)
class PodsOfRun:
    """The pods of one run, and the evidence of those that ended."""

    pods: dict[str, RunPod] = field(default_factory=dict)
    """By name."""
    evidence: dict[tuple[str, str, datetime | None], Evidence] = field(default_factory=dict)
    """By subject and cause, the first one stays; those of containers by their time too."""
    gone: dict[str, None] = field(default_factory=dict)
    """Uids of pods that ended or were deleted, the oldest first."""
    ended: dict[str, EndedPod] = field(default_factory=dict)
    """Ended pods that are to be examined, by uid."""
    pulls: dict[str, datetime | None] = field(default_factory=dict)
    """When the images of a pod were present, by uid; None without events. Of the pods that started last."""

    def of_attempt(self, attempt: int) -> Sequence[PodStartup]:
        """Return the live pods of an attempt."""
        return [pod.startup for pod in self._live(attempt)]

    def leading(self, attempt: int, *, hosts: int | None) -> PodProgram | None:
        """Return the program of the live pod that leads an attempt.

        None if it is not known. Without positions it is the only pod of a workload of one host.
        """
        live = self._live(attempt)
        leading = [pod for pod in live if pod.leads or (pod.leads is None and hosts == 1)]
        return leading[0].program if len(leading) == 1 else None

    def crashing(self, attempt: int) -> PodProgram | None:
        """Return a program whose restart the kubelet delays, first that of the run."""
        waiting = [pod for pod in self._live(attempt) if pod.program is not None and pod.program.waiting]
        return min(waiting, key=_leads_first).program if waiting else None

    @property
    def restarts(self) -> int | None:
        """Restarts of the containers of all pods that exist; None without a pod."""
        return sum(pod.restarts for pod in self.pods.values()) if self.pods else None

    def _live(self, attempt: int) -> Sequence[RunPod]:
        return [pod for pod in self.pods.values() if pod.live and pod.attempt in (None, attempt)]

    def last_started(self) -> Sequence[RunPod]:
        """Return the live pods that started last, if all have started."""
        live = [pod for pod in self.pods.values() if pod.live]
        if any(pod.startup.started is None for pod in live):
            return ()
        return sorted(live, key=_started, reverse=True)[:MAX_PULLS]

    def pulls_of(self, attempt: int) -> Sequence[datetime | None]:
        """Return the ends of the pulls of an attempt; empty if their events were not read."""
        return [self.pulls[pod.uid] for pod in self._live(attempt) if pod.uid in self.pulls]

    def add(self, item: Evidence | None) -> bool:
        """Keep an item of evidence; return whether it is new."""
        if item is None:
            return False
        key = (item.subject, item.cause, item.time if item.cause in _OF_CONTAINERS else None)
        if key in self.evidence:
            return False
        same = [each for each in self.evidence if each[:2] == key[:2]]
        if len(same) >= MAX_FAILURES:
            del self.evidence[same[0]]
        elif len(self.evidence) >= MAX_EVIDENCE:
            return False
        self.evidence[key] = item
        return True

    def note_end(self, uid: str) -> None:
        """Note that the processes of a pod do not report any more."""
        self.gone[uid] = None
        if len(self.gone) > MAX_GONE:
            del self.gone[next(iter(self.gone))]


class RunPodStore:
    """The pods of runs in memory.

    It is the store of an informer of labelled pods; other informers deliver those without the label.

    Args:
        changed: Receives the key of a run whose pods changed; returns at once.
        ended: Receives the key of a run with a pod that ended with evidence, or was removed.
        is_followed: Returns whether a run has not ended; only its evidence outlives its pods.
        started: Receives the key of a run with a pod that has started.
        deleted: Receives every deletion, also of pods for which there was no room.
    """

    def __init__(
        self,
        changed: Callable[[LabelKey], None],
        ended: Callable[[LabelKey], None],
        is_followed: Callable[[LabelKey], bool],
        *,
        started: Callable[[LabelKey], None],
        deleted: DeletedPods,
    ) -> None:
        self._started = started
        self._is_followed = is_followed
        self._deleted = deleted
        self._changed = changed
        self._ended = ended
        self._runs: dict[LabelKey, PodsOfRun] = {}
        self._labels: dict[str, LabelKey] = {}
        """By namespace and name of the pod."""
        self._unlabelled: set[str] = set()
        """Pods among them that another informer delivers."""
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

    def note(self, key: LabelKey, evidence: Evidence) -> bool:
        """Keep the evidence of another object; return whether it is new."""
        return self._is_followed(key) and self._runs.setdefault(key, PodsOfRun()).add(evidence)

    def put(self, item: Mapping[str, Any]) -> None:
        """Reduce and keep a labelled pod."""
        metadata = item["metadata"]
        label = (metadata.get("labels") or {}).get(RUN_LABEL)
        if label:
            self._unlabelled.discard(key_of(item))
            self._keep(item, (metadata["namespace"], label))

    def add(self, item: Mapping[str, Any], key: LabelKey) -> None:
        """Reduce and keep a pod of a run that has not its label."""
        pod_key = key_of(item)
        if self._keep(item, key):
            self._unlabelled.add(pod_key)

    def drop(self, pod_key: str) -> None:
        """Forget an unlabelled pod; its last state was not seen."""
        self._deleted.missed()
        if pod_key in self._unlabelled:
            self._forget(pod_key)

    def remove(self, item: Mapping[str, Any]) -> None:
        """Forget a pod that was deleted, but not why."""
        self._deleted.gone(item["metadata"]["uid"])
        key = self._labels.get(key_of(item))
        if key is not None:
            self._runs[key].note_end(item["metadata"]["uid"])
            self._examine(key, self._runs[key], item, removed=True)
            self._forget(key_of(item))

    def keep_only(self, keys: set[str]) -> None:
        """Forget all labelled pods but these; their last state was not seen."""
        self._deleted.missed()
        for pod_key in self._labels.keys() - keys - self._unlabelled:
            self._forget(pod_key)

    def _keep(self, item: Mapping[str, Any], key: LabelKey) -> bool:
        """Keep a pod of a run; return whether there was room."""
        metadata, pod_key = item["metadata"], key_of(item)
        if pod_key not in self._labels and len(self._labels) >= MAX_PODS:
            self.left_out += 1
            return False
        self._labels[pod_key] = key
        run = self._runs.setdefault(key, PodsOfRun())
        pod = _reduced(item)
        before = run.pods.get(metadata["name"])
        run.pods[metadata["name"]] = pod
        if (item.get("status") or {}).get("phase") in FINISHED_PHASES:
            run.note_end(pod.uid)
        if before is not None and before.uid != pod.uid:
            run.note_end(before.uid)
        self._examine(key, run, item)
        if before != pod:
            self._changed(key)
        if pod.startup.started and (before is None or before.uid != pod.uid or before.startup.started is None):
            self._started(key)
        return True

    def _examine(self, key: LabelKey, run: PodsOfRun, item: Mapping[str, Any], *, removed: bool = False) -> None:
        metadata = item["metadata"]
        evidence = pod_evidence(item)
        is_new = sum(run.add(each) for each in evidence) > 0
        if (is_new or removed) and (metadata["uid"] in run.ended or len(run.ended) < MAX_ENDED):
            node = next((each.node for each in evidence if each.cause not in _ON_A_WORKING_NODE), "")
            run.ended[metadata["uid"]] = EndedPod(metadata["uid"], node)
            self._ended(key)

    def _forget(self, pod_key: str) -> None:
        key = self._labels.pop(pod_key, None)
        self._unlabelled.discard(pod_key)
        if key is None:
            return
        run = self._runs[key]
        pod = run.pods.pop(pod_key.partition("/")[2], None)
        if pod is not None:
            run.pulls.pop(pod.uid, None)
        if not run.pods and not self._is_followed(key):
            del self._runs[key]
        self._changed(key)


def _leads_first(pod: RunPod) -> tuple[bool, str]:
    return not pod.leads, pod.startup.name


def _started(pod: RunPod) -> float:
    return pod.startup.started.timestamp() if pod.startup.started else 0.0


def _reduced(pod: Mapping[str, Any]) -> RunPod:
    metadata, status = pod["metadata"], pod.get("status") or {}
    attempt = (metadata.get("labels") or {}).get(_ATTEMPT, "")
    return RunPod(
        uid=metadata["uid"],
        live=status.get("phase") not in FINISHED_PHASES and "deletionTimestamp" not in metadata,
        attempt=int(attempt) if attempt.isdecimal() and len(attempt) < 10 else None,
        startup=PodStartup.of(pod),
        program=PodProgram.of(pod),
        restarts=sum(each.get("restartCount") or 0 for each in status.get("containerStatuses") or ()),
        leads=leads(PodView.of(pod)),
    )
