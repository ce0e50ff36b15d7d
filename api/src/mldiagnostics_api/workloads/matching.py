"""The opt-in decision, shared by webhook, operator and command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, INJECT_ANNOTATION, OPT_IN_LABEL
from mldiagnostics_api.workloads.kinds import WORKLOADS, OptIn, WorkloadKind, workload_of
from mldiagnostics_api.workloads.owners import WorkloadRun
from mldiagnostics_api.workloads.variables import InjectedIdentity, InjectionSettings, variable_names

Labels = Mapping[str, str]
Annotations = Mapping[str, str]

EXCLUDED_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
EXCLUDED_PREFIX: Final = "gke-managed-"


class MatchReason(StrEnum):
    """The rule that decided; rules apply in this order."""

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
    """Whether a workload is a run, with the reason."""

    reason: MatchReason
    message: str

    @property
    def opted_in(self) -> bool:
        """Whether the workload is a run."""
        return self.reason in _OPTS_IN


def match(
    workload: WorkloadKind, *, labels: Labels, pod_labels: Labels, namespace: str, namespace_labels: Labels
) -> Match:
    """Decide whether a workload is opted in.

    The label nearest to the pod wins; an excluded or exempt namespace overrides all labels.

    Args:
        workload: Kind of the topmost owner.
        labels: Labels of the topmost owner.
        pod_labels: Labels of the pod.
        namespace: Name of the namespace.
        namespace_labels: Labels of the namespace.
    """
    label = f"{OPT_IN_LABEL}=true"
    if namespace in EXCLUDED_NAMESPACES or namespace.startswith(EXCLUDED_PREFIX):
        return Match(
            MatchReason.NAMESPACE_EXCLUDED, f"namespace {namespace} is a system namespace, which is always excluded"
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
            f"namespace {namespace} has the label {label}, but a {workload.kind} needs its own label",
        )
    return Match(MatchReason.NAMESPACE_LABEL, f"namespace {namespace} has the label {label}")


def injection_opt_out(*, pod: Annotations, workload: Annotations, namespace: Annotations) -> str:
    """Return the message if an annotation disables injection; empty if none does."""
    annotated = {"pod": pod, "workload": workload, "namespace": namespace}
    owners = (owner for owner, annotations in annotated.items() if annotations.get(INJECT_ANNOTATION) == "false")
    return next((f"the {owner} has the annotation {INJECT_ANNOTATION}=false" for owner in owners), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The webhook's decision about a namespace, a workload or a pod, for people."""

    match: Match
    message: str
    run_id: str | None = None
    variables: tuple[str, ...] = ()
    """Names of the variables that containers would get; a container's own values stay."""


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
    """Explain whether a workload is a run, by which label, and the injected variables.

    Args:
        run: Topmost owner of a pod (`owners.run_of`) or a pod without a controller (`owners.lone_run`); None explains
            the namespace.
        namespace: Name of the namespace.
        namespace_labels: Labels of the namespace.
        settings: Settings of the webhook.
        pod_labels: Labels of the pod, if the question is about a pod.
        pod_annotations: Annotations of the pod, if the question is about a pod.
        namespace_annotations: Annotations of the namespace.

    Raises:
        ValueError: The kind of `run` is not supported.
    """
    if run is None:
        return _explain_namespace(namespace, namespace_labels)
    workload = workload_of(run.kind, run.workload["apiVersion"])
    if workload is None:
        raise ValueError(f"{run.kind} ({run.workload['apiVersion']}): not a supported kind of workload")
    pod_labels = pod_labels or {}
    matched = match(
        workload,
        labels=run.workload["metadata"].get("labels") or {},
        pod_labels=pod_labels,
        namespace=namespace,
        namespace_labels=namespace_labels,
    )
    if not matched.opted_in:
        return Explanation(match=matched, message=f"{run.kind} {namespace}/{run.name} is not a run: {matched.message}")
    identity = InjectedIdentity.of(run, workload, cluster=settings.cluster, namespace=namespace)
    opt_out = injection_opt_out(
        pod=pod_annotations or {},
        workload=run.workload["metadata"].get("annotations") or {},
        namespace=namespace_annotations or {},
    )
    message = f"{run.kind} {namespace}/{run.name} is run {identity.run_id}: {matched.message}"
    return Explanation(
        match=matched,
        message=f"{message}; its pods are not injected: {opt_out}" if opt_out else message,
        run_id=identity.run_id,
        variables=() if opt_out else variable_names(identity, settings, pod_labels=pod_labels),
    )


def _explain_namespace(namespace: str, labels: Labels) -> Explanation:
    by_namespace = [workload for workload in WORKLOADS if workload.opt_in is OptIn.NAMESPACE and not workload.groups]
    matched = match(by_namespace[0], labels={}, pod_labels={}, namespace=namespace, namespace_labels=labels)
    own = ", ".join(workload.kind for workload in WORKLOADS if workload.opt_in is OptIn.OWN)
    match matched.reason:
        case MatchReason.NAMESPACE_LABEL:
            kinds = ", ".join(workload.kind for workload in by_namespace)
            message = f"{matched.message}: every {kinds} in it is a run; {own} need their own label"
        case MatchReason.NO_LABEL:
            lacks = f"namespace {namespace} does not have the label {OPT_IN_LABEL}=true"
            message = f"{lacks}: only workloads with their own label are runs"
        case _:
            message = f"{matched.message}: no workload in it is a run"
    return Explanation(match=matched, message=message)
