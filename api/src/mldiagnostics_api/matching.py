"""Opted in or not, by which label, and why: one answer for webhook, operator and command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, INJECT_ANNOTATION, OPT_IN_LABEL
from mldiagnostics_api.owners import WorkloadRun
from mldiagnostics_api.variables import InjectedIdentity, InjectionSettings, told
from mldiagnostics_api.workloads import WORKLOADS, OptIn, WorkloadKind, workload_of

Labels = Mapping[str, str]
Annotations = Mapping[str, str]

EXCLUDED_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
EXCLUDED_PREFIX: Final = "gke-managed-"


class MatchReason(StrEnum):
    """What decided; the order is the precedence."""

    NAMESPACE_EXCLUDED = "NamespaceExcluded"
    NAMESPACE_EXEMPT = "NamespaceExempt"
    WORKLOAD_OPTED_OUT = "WorkloadOptedOut"
    WORKLOAD_LABEL = "WorkloadLabel"
    POD_LABEL = "PodLabel"
    KIND_NEEDS_OWN_LABEL = "KindNeedsOwnLabel"
    NAMESPACE_LABEL = "NamespaceLabel"
    NO_LABEL = "NoLabel"


_OPTS_IN: Final = frozenset({MatchReason.WORKLOAD_LABEL, MatchReason.POD_LABEL, MatchReason.NAMESPACE_LABEL})


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a workload is a run, and why."""

    why: MatchReason
    message: str

    @property
    def opted_in(self) -> bool:
        """Whether the workload is a run."""
        return self.why in _OPTS_IN


def match(
    workload: WorkloadKind, *, labels: Labels, pod_labels: Labels, namespace: str, namespace_labels: Labels
) -> Match:
    """Decide whether a workload is opted in.

    `labels` are those of the topmost owner, `pod_labels` those of the pod in question. What is nearer wins, except
    that a namespace that is kept out stays out.
    """
    label = f"{OPT_IN_LABEL}=true"
    if namespace in EXCLUDED_NAMESPACES or namespace.startswith(EXCLUDED_PREFIX):
        return Match(
            MatchReason.NAMESPACE_EXCLUDED, f"namespace {namespace} belongs to the system and is never looked at"
        )
    if namespace_labels.get(EXEMPT_NAMESPACE_LABEL) == "true":
        return Match(MatchReason.NAMESPACE_EXEMPT, f"namespace {namespace} has the label {EXEMPT_NAMESPACE_LABEL}=true")
    if "false" in (labels.get(OPT_IN_LABEL), pod_labels.get(OPT_IN_LABEL)):
        return Match(
            MatchReason.WORKLOAD_OPTED_OUT, f"the {workload.kind} or its pod has the label {OPT_IN_LABEL}=false"
        )
    if labels.get(OPT_IN_LABEL) == "true":
        return Match(MatchReason.WORKLOAD_LABEL, f"the {workload.kind} has the label {label}")
    if pod_labels.get(OPT_IN_LABEL) == "true":
        return Match(MatchReason.POD_LABEL, f"the pod has the label {label}")
    if namespace_labels.get(OPT_IN_LABEL) != "true":
        return Match(
            MatchReason.NO_LABEL, f"neither the {workload.kind} nor namespace {namespace} has the label {label}"
        )
    if workload.opt_in is OptIn.OWN:
        return Match(
            MatchReason.KIND_NEEDS_OWN_LABEL,
            f"namespace {namespace} has the label {label}, but a {workload.kind} needs it itself",
        )
    return Match(MatchReason.NAMESPACE_LABEL, f"namespace {namespace} has the label {label}")


def kept_from_pods(*, pod: Annotations, workload: Annotations, namespace: Annotations) -> str:
    """Say what has the annotation that leaves the pods of a run as they are; empty if nothing has it."""
    everything = {"pod": pod, "workload": workload, "namespace": namespace}
    keepers = (who for who, annotations in everything.items() if annotations.get(INJECT_ANNOTATION) == "false")
    return next((f"the {who} has the annotation {INJECT_ANNOTATION}=false" for who in keepers), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What the webhook makes of a namespace, a workload or a pod, for people."""

    match: Match
    message: str
    run_id: str | None = None
    variables: tuple[str, ...] = ()
    """Names of what every container would be told; what a container sets itself stays as it is."""


def explain(
    run: WorkloadRun | None,
    *,
    namespace: str,
    namespace_labels: Labels,
    settings: InjectionSettings,
    pod_labels: Labels | None = None,
    pod_annotations: Annotations | None = None,
    namespace_annotations: Annotations | None = None,
) -> Explanation:
    """Explain whether something is matched, by which label, and what would be injected.

    `run` is the topmost owner of a pod (`owners.run_of`), or a pod that nothing controls (`owners.lone_run`); without
    it, the namespace is explained. `pod_labels` and `pod_annotations` are those of the pod in question, if it is about
    one.
    """
    if run is None:
        return _explain_namespace(namespace, namespace_labels)
    workload = workload_of(run.kind, run.workload["apiVersion"])
    if workload is None:
        raise ValueError(f"{run.kind} of {run.workload['apiVersion']} is no kind of workload that can be a run")
    pod_labels = pod_labels or {}
    matched = match(
        workload,
        labels=run.workload["metadata"].get("labels") or {},
        pod_labels=pod_labels,
        namespace=namespace,
        namespace_labels=namespace_labels,
    )
    if not matched.opted_in:
        return Explanation(match=matched, message=f"{run.kind} {namespace}/{run.name} is no run: {matched.message}")
    identity = InjectedIdentity.of(run, workload, cluster=settings.cluster, namespace=namespace)
    kept = kept_from_pods(
        pod=pod_annotations or {},
        workload=run.workload["metadata"].get("annotations") or {},
        namespace=namespace_annotations or {},
    )
    message = f"{run.kind} {namespace}/{run.name} is run {identity.run_id}: {matched.message}"
    return Explanation(
        match=matched,
        message=f"{message}; pods are not told of it: {kept}" if kept else message,
        run_id=identity.run_id,
        variables=() if kept else told(identity, settings, pod_labels=pod_labels),
    )


def _explain_namespace(namespace: str, labels: Labels) -> Explanation:
    by_itself = [workload for workload in WORKLOADS if workload.opt_in is OptIn.NAMESPACE and not workload.groups]
    matched = match(by_itself[0], labels={}, pod_labels={}, namespace=namespace, namespace_labels=labels)
    own = ", ".join(workload.kind for workload in WORKLOADS if workload.opt_in is OptIn.OWN)
    match matched.why:
        case MatchReason.NAMESPACE_LABEL:
            every = ", ".join(workload.kind for workload in by_itself)
            message = f"{matched.message}: every {every} in it is a run; {own} need the label themselves"
        case MatchReason.NO_LABEL:
            lacks = f"namespace {namespace} does not have the label {OPT_IN_LABEL}=true"
            message = f"{lacks}: only what has it itself is a run"
        case _:
            message = f"{matched.message}: nothing in it is a run"
    return Explanation(match=matched, message=message)
