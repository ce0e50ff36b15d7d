"""The kinds of workloads, one table entry each: pods, owners and labels."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from mldiagnostics_api.names import OPT_IN_LABEL

Object = Mapping[str, Any]
"""A Kubernetes object as the API returns it, camel case."""

JOBSET: Final = "jobset.sigs.k8s.io"
JOB: Final = "batch.kubernetes.io"
LWS: Final = "leaderworkerset.sigs.k8s.io"
TRAINING: Final = "training.kubeflow.org"

COMPLETION_INDEX: Final = f"{JOB}/job-completion-index"
_KEPT_LABELS: Final = (
    OPT_IN_LABEL,
    COMPLETION_INDEX,
    f"{JOB}/controller-uid",
    f"{JOBSET}/job-global-index",
    f"{JOBSET}/job-index",
    f"{JOBSET}/replicatedjob-name",
    f"{LWS}/group-index",
    f"{LWS}/name",
    f"{LWS}/worker-index",
    f"{TRAINING}/replica-index",
    f"{TRAINING}/replica-type",
    "apps.kubernetes.io/pod-index",
    "pod-template-hash",
    "ray.io/group",
    "ray.io/node-type",
    "ray.io/replica-host-index",
    "ray.io/worker-group-replica-index",
)


def kept_labels(metadata: Object) -> dict[str, str]:
    """Return the labels that captures need: opt-in, and position in the workload."""
    labels = metadata.get("labels") or {}
    return {key: labels[key] for key in _KEPT_LABELS if key in labels}


class OptIn(Enum):
    """The label that opts a kind in."""

    NAMESPACE = "a label on the namespace is enough"
    OWN = "the workload needs its own label"


@dataclass(frozen=True, slots=True, kw_only=True)
class RankLabels:
    """Labels of a pod with its position in the workload; empty if not available."""

    rank: str = ""
    slice: str = ""
    host: str = ""
    """Index of the host in its slice."""
    attempt: str = ""
    jobs: str = ""
    """Number of parallel Jobs; with one Job, the host's index is the rank."""

    def rank_label(self, labels: Mapping[str, str]) -> str:
        """Return the label that holds the rank of a pod with these labels, or empty."""
        return self.rank or (self.host if self.jobs and labels.get(self.jobs) == "1" else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """One kind of workload; the first of `versions` is preferred."""

    kind: str
    group: str
    versions: tuple[str, ...] = ("v1",)
    templates: tuple[str, ...] = ("spec.template",)
    """Paths of its pod templates; `[]` stands for every element or value."""
    pods: Callable[[Object], str | None] = lambda _: None
    """Returns the label selector of the object's pods; None while there is none."""
    parts: tuple[str, ...] = ()
    """Kinds between it and its pods, nearest to it first."""
    groups: bool = False
    """Whether it only groups runs: each of its parts is a run."""
    opt_in: OptIn = OptIn.NAMESPACE
    rank_labels: RankLabels = RankLabels()

    @property
    def plural(self) -> str:
        """The name of its objects in paths of the API."""
        return f"{self.kind.lower()}s"

    @property
    def api_version(self) -> str:
        """The preferred API version."""
        return f"{self.group}/{self.versions[0]}" if self.group else self.versions[0]


def _name(workload: Object) -> str:
    return str(workload["metadata"]["name"])


def _by_name(label: str) -> Callable[[Object], str | None]:
    return lambda workload: f"{label}={_name(workload)}"


def _by_uid(label: str) -> Callable[[Object], str | None]:
    return lambda workload: f"{label}={workload['metadata']['uid']}"


def _by_selector(workload: Object) -> str | None:
    return selector_text((workload.get("spec") or {}).get("selector") or {}) or None


def _by_ray_cluster(*path: str) -> Callable[[Object], str | None]:
    def pods(workload: Object) -> str | None:
        value: Any = workload
        for key in path:
            value = (value or {}).get(key)
        return f"ray.io/cluster={value}" if value else None

    return pods


def _trainjob_pods(workload: Object) -> str | None:
    # The JobSet has the TrainJob's name; its initializers end before training starts and have no profiler.
    initializers = "dataset-initializer,model-initializer"
    return f"{JOBSET}/jobset-name={_name(workload)},{JOBSET}/replicatedjob-name notin ({initializers})"


def selector_text(selector: Object) -> str:
    """Return a LabelSelector object as value of the API's `labelSelector` parameter."""
    terms = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for expression in selector.get("matchExpressions") or ():
        key, values = expression["key"], ",".join(expression.get("values") or ())
        match expression["operator"]:
            case "In":
                terms.append(f"{key} in ({values})")
            case "NotIn":
                terms.append(f"{key} notin ({values})")
            case "Exists":
                terms.append(key)
            case _:
                terms.append(f"!{key}")
    return ",".join(terms)


_OF_JOBSET: Final = RankLabels(
    slice=f"{JOBSET}/job-index",
    host=COMPLETION_INDEX,
    attempt=f"{JOBSET}/restart-attempt",
    jobs=f"{JOBSET}/global-replicas",
)
_OF_RAY: Final = RankLabels(slice="ray.io/worker-group-replica-index", host="ray.io/replica-host-index")
_OF_TRAINING: Final = RankLabels(host=f"{TRAINING}/replica-index")
_RAY_TEMPLATES: Final = ("headGroupSpec.template", "workerGroupSpecs[].template")

LONE_POD: Final = WorkloadKind(kind="Pod", group="", templates=("",), opt_in=OptIn.OWN)
"""A pod without a controller."""

WORKLOADS: Final = (
    WorkloadKind(
        kind="JobSet",
        group="jobset.x-k8s.io",
        versions=("v1alpha2",),
        templates=("spec.replicatedJobs[].template.spec.template",),
        pods=_by_uid(f"{JOBSET}/jobset-uid"),
        rank_labels=_OF_JOBSET,
        parts=("Job",),
    ),
    WorkloadKind(
        kind="Job",
        group="batch",
        pods=_by_uid(f"{JOB}/controller-uid"),
        rank_labels=RankLabels(rank=COMPLETION_INDEX),
    ),
    WorkloadKind(
        kind="CronJob",
        group="batch",
        templates=("spec.jobTemplate.spec.template",),
        parts=("Job",),
        groups=True,
    ),
    WorkloadKind(
        kind="LeaderWorkerSet",
        group="leaderworkerset.x-k8s.io",
        templates=("spec.leaderWorkerTemplate.leaderTemplate", "spec.leaderWorkerTemplate.workerTemplate"),
        pods=_by_name(f"{LWS}/name"),
        rank_labels=RankLabels(slice=f"{LWS}/group-index", host=f"{LWS}/worker-index"),
        parts=("StatefulSet", "Pod"),
    ),
    WorkloadKind(
        kind="RayJob",
        group="ray.io",
        templates=(*(f"spec.rayClusterSpec.{path}" for path in _RAY_TEMPLATES), "spec.submitterPodTemplate"),
        pods=_by_ray_cluster("status", "rayClusterName"),
        rank_labels=_OF_RAY,
        parts=("RayCluster",),
    ),
    WorkloadKind(
        kind="RayCronJob",
        group="ray.io",
        templates=(
            *(f"spec.jobTemplate.rayClusterSpec.{path}" for path in _RAY_TEMPLATES),
            "spec.jobTemplate.submitterPodTemplate",
        ),
        parts=("RayJob",),
        groups=True,
    ),
    WorkloadKind(
        kind="RayCluster",
        group="ray.io",
        templates=tuple(f"spec.{path}" for path in _RAY_TEMPLATES),
        pods=_by_ray_cluster("metadata", "name"),
        rank_labels=_OF_RAY,
    ),
    WorkloadKind(
        kind="RayService",
        group="ray.io",
        templates=tuple(f"spec.rayClusterConfig.{path}" for path in _RAY_TEMPLATES),
        pods=_by_ray_cluster("status", "activeServiceStatus", "rayClusterName"),
        rank_labels=_OF_RAY,
        parts=("RayCluster",),
    ),
    WorkloadKind(
        kind="StatefulSet",
        group="apps",
        pods=_by_selector,
        rank_labels=RankLabels(rank="apps.kubernetes.io/pod-index"),
        opt_in=OptIn.OWN,
    ),
    WorkloadKind(
        kind="Deployment",
        group="apps",
        pods=_by_selector,
        parts=("ReplicaSet",),
        opt_in=OptIn.OWN,
    ),
    WorkloadKind(
        kind="ReplicaSet",
        group="apps",
        pods=_by_selector,
        opt_in=OptIn.OWN,
    ),
    WorkloadKind(
        kind="TrainJob",
        group="trainer.kubeflow.org",
        versions=("v1alpha1",),
        templates=(),
        pods=_trainjob_pods,
        rank_labels=_OF_JOBSET,
        parts=("JobSet", "Job"),
    ),
    WorkloadKind(
        kind="PyTorchJob",
        group="kubeflow.org",
        templates=("spec.pytorchReplicaSpecs[].template",),
        pods=_by_name(f"{TRAINING}/job-name"),
        rank_labels=_OF_TRAINING,
    ),
    WorkloadKind(
        kind="JAXJob",
        group="kubeflow.org",
        templates=("spec.jaxReplicaSpecs[].template",),
        pods=_by_name(f"{TRAINING}/job-name"),
        rank_labels=RankLabels(rank=f"{TRAINING}/replica-index"),
    ),
    WorkloadKind(
        kind="MPIJob",
        group="kubeflow.org",
        versions=("v2beta1", "v1"),
        templates=("spec.mpiReplicaSpecs[].template",),
        pods=_by_name(f"{TRAINING}/job-name"),
        rank_labels=_OF_TRAINING,
        parts=("Job",),
    ),
    WorkloadKind(
        kind="PathwaysJob",
        group="pathways-job.pathways.domain",
        templates=("spec.controller.template",),
        pods=_by_name(f"{JOBSET}/jobset-name"),
        rank_labels=_OF_JOBSET,
        parts=("JobSet", "Job"),
    ),
    LONE_POD,
)

KINDS_WITH_POSITIONS: Final = tuple(workload for workload in WORKLOADS if workload.kind in ("Job", "JobSet"))
"""Kinds whose spec confirms the positions of pods; of other owners, metadata is enough."""

_BY_KIND: Final = {(workload.group, workload.kind): workload for workload in WORKLOADS}

SELECTABLE_KINDS: Final = tuple(w.kind for w in WORKLOADS if not w.groups and w.kind != "Pod")
"""Kinds that `target.workloadRef` may name."""


def workload_named(word: str) -> WorkloadKind | None:
    """Return the kind that a user names as kubectl takes it: singular or plural."""
    name = word.lower()
    return next((each for each in WORKLOADS if name in (each.kind.lower(), each.plural)), None)


def workload_of(kind: str, api_version: str | None = None) -> WorkloadKind | None:
    """Return the table entry of a kind; only the group of `api_version` is compared."""
    if api_version is None:
        return next((workload for workload in WORKLOADS if workload.kind == kind), None)
    group, slash, _ = api_version.partition("/")
    return _BY_KIND.get((group if slash else "", kind))
