"""Opted in or not, by which label, and why: one answer for webhook, operator and command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, OPT_IN_LABEL
from mldiagnostics_api.workloads import OptIn, Workload

Labels = Mapping[str, str]

EXCLUDED_NAMESPACES: Final = frozenset({"kube-system", "kube-public", "kube-node-lease"})
EXCLUDED_PREFIX: Final = "gke-managed-"


class Why(StrEnum):
    """What decided; the order is the precedence."""

    NAMESPACE_EXCLUDED = "NamespaceExcluded"
    NAMESPACE_EXEMPT = "NamespaceExempt"
    WORKLOAD_OPTED_OUT = "WorkloadOptedOut"
    WORKLOAD_LABEL = "WorkloadLabel"
    POD_LABEL = "PodLabel"
    KIND_NEEDS_OWN_LABEL = "KindNeedsOwnLabel"
    NAMESPACE_LABEL = "NamespaceLabel"
    NO_LABEL = "NoLabel"


_OPTS_IN: Final = frozenset({Why.WORKLOAD_LABEL, Why.POD_LABEL, Why.NAMESPACE_LABEL})


@dataclass(frozen=True, slots=True)
class Match:
    """Whether a workload is a run, and why."""

    why: Why
    message: str

    @property
    def opted_in(self) -> bool:
        """Whether the workload is a run."""
        return self.why in _OPTS_IN


def match(workload: Workload, *, labels: Labels, pod_labels: Labels, namespace: str, namespace_labels: Labels) -> Match:
    """Decide whether a workload is opted in.

    `labels` are those of the topmost owner, `pod_labels` those of the pod in question. What is nearer wins, except
    that a namespace that is kept out stays out.
    """
    label = f"{OPT_IN_LABEL}=true"
    if namespace in EXCLUDED_NAMESPACES or namespace.startswith(EXCLUDED_PREFIX):
        return Match(Why.NAMESPACE_EXCLUDED, f"namespace {namespace} belongs to the system and is never looked at")
    if namespace_labels.get(EXEMPT_NAMESPACE_LABEL) == "true":
        return Match(Why.NAMESPACE_EXEMPT, f"namespace {namespace} has the label {EXEMPT_NAMESPACE_LABEL}=true")
    if "false" in (labels.get(OPT_IN_LABEL), pod_labels.get(OPT_IN_LABEL)):
        return Match(Why.WORKLOAD_OPTED_OUT, f"the {workload.kind} or its pod has the label {OPT_IN_LABEL}=false")
    if labels.get(OPT_IN_LABEL) == "true":
        return Match(Why.WORKLOAD_LABEL, f"the {workload.kind} has the label {label}")
    if pod_labels.get(OPT_IN_LABEL) == "true":
        return Match(Why.POD_LABEL, f"the pod has the label {label}")
    if namespace_labels.get(OPT_IN_LABEL) != "true":
        return Match(Why.NO_LABEL, f"neither the {workload.kind} nor namespace {namespace} has the label {label}")
    if workload.opt_in is OptIn.OWN:
        return Match(
            Why.KIND_NEEDS_OWN_LABEL,
            f"namespace {namespace} has the label {label}, but a {workload.kind} needs it itself",
        )
    return Match(Why.NAMESPACE_LABEL, f"namespace {namespace} has the label {label}")
