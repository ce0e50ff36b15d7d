"""Why the webhook injects a run into a pod or a workload, or does not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from mldiagnostics_api.injection import Injection, InjectionSettings, OwnersUnknown, decide
from mldiagnostics_api.names import EXEMPT_NAMESPACE_LABEL, INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION
from mldiagnostics_api.workloads.matching import MatchReason, explain
from mldiagnostics_api.workloads.owners import run_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    Object = Mapping[str, Any]


INJECTED_PREFIX = "Injected: "
SETTINGS = InjectionSettings(cluster="this-cluster")
"""The webhook's own settings change the run id and values of variables, never whether a pod is injected."""

_VARIABLES = ("MLDIAG_", "GKE_DIAGON_", "DIAGON_")


class InjectionState(StrEnum):
    """Whether a pod has a run, or the next pods of a workload get one."""

    INJECTED = "Injected"
    """The pod has a run, or the next pods of the workload get one."""
    NOT_INJECTED = "NotInjected"
    MISSED = "Missed"
    """The pod would get a run now, but was created without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectionExplanation:
    """The webhook's decision, for people."""

    object: str
    state: InjectionState
    reason: str
    message: str
    run_id: str | None = None
    variables: tuple[str, ...] = ()
    remedy: str = ""
    """Command that changes the decision; empty if nothing has to change."""

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as JSON."""
        return {
            "object": self.object,
            "state": str(self.state),
            "reason": self.reason,
            "message": self.message,
            "runId": self.run_id,
            "variables": list(self.variables),
            "remedy": self.remedy or None,
        }


def explain_pod(
    pod: Object, namespace: Object, owners: tuple[Object, ...] | OwnersUnknown, now: datetime
) -> InjectionExplanation:
    """Explain a pod that exists.

    Args:
        pod: The pod.
        namespace: Its namespace.
        owners: Its owners, nearest first.
        now: Current time with time zone.
    """
    metadata = pod["metadata"]
    name, annotations = f"pod {metadata['namespace']}/{metadata['name']}", metadata.get("annotations") or {}
    if run := annotations.get(RUN_ANNOTATION):
        return InjectionExplanation(
            object=name,
            state=InjectionState.INJECTED,
            reason="Injected",
            message=annotations.get(INJECTION_ANNOTATION, f"run {run}").removeprefix(INJECTED_PREFIX),
            run_id=run,
            variables=_variables_of(pod),
        )
    of_namespace = namespace["metadata"]
    decision = decide(
        dict(pod),
        namespace=metadata["namespace"],
        namespace_labels=of_namespace.get("labels") or {},
        namespace_annotations=of_namespace.get("annotations") or {},
        owners=owners,
        settings=SETTINGS,
        now=now,
    )
    if isinstance(decision, Injection):
        message = "created without a run, but pods like it get one now: the label or the webhook came later"
        remedy = f"create the pod again; if it gets no run then: mldiag doctor -n {metadata['namespace']}"
        return InjectionExplanation(
            object=name, state=InjectionState.MISSED, reason="CreatedBefore", message=message, remedy=remedy
        )
    top = run_of(owners) if isinstance(owners, tuple) else None
    workload = None if top is None else (top.kind.lower(), top.name)
    return InjectionExplanation(
        object=name,
        state=InjectionState.NOT_INJECTED,
        reason=str(decision.reason),
        message=decision.message,
        remedy=_remedy(str(decision.reason), metadata["namespace"], workload),
    )


def explain_workload(
    workload: Object, namespace: Object, owners: tuple[Object, ...], run_id: str | None
) -> InjectionExplanation:
    """Explain the next pods of a workload.

    Args:
        workload: The workload, with kind and version.
        namespace: Its namespace.
        owners: Its owners, nearest first.
        run_id: Id of its run, if the operator has recorded one.

    Raises:
        ValueError: The kind of its topmost owner is not supported.
    """
    metadata, of_namespace = workload["metadata"], namespace["metadata"]
    run = run_of((workload, *owners))
    explanation = explain(
        run,
        namespace=metadata["namespace"],
        namespace_labels=of_namespace.get("labels") or {},
        namespace_annotations=of_namespace.get("annotations") or {},
        settings=SETTINGS,
    )
    reason = explanation.match.reason
    opted_in = explanation.match.opted_in
    top = run.kind if run else workload["kind"]
    is_injected = opted_in and bool(explanation.variables)
    message = f"the {top} is a run: {explanation.match.message}" if is_injected else explanation.message
    return InjectionExplanation(
        object=f"{workload['kind'].lower()} {metadata['namespace']}/{metadata['name']}",
        state=InjectionState.INJECTED if is_injected else InjectionState.NOT_INJECTED,
        reason=str(reason),
        message=message,
        run_id=run_id,
        variables=explanation.variables,
        remedy="" if opted_in or run is None else _remedy(reason, metadata["namespace"], (run.kind.lower(), run.name)),
    )


def _variables_of(pod: Object) -> tuple[str, ...]:
    containers = pod["spec"].get("containers") or ()
    names = (entry["name"] for container in containers for entry in container.get("env") or ())
    return tuple(sorted({name for name in names if name.startswith(_VARIABLES)}))


def _remedy(reason: str, namespace: str, workload: tuple[str, str] | None) -> str:
    """Return the command that opts in, for the reasons that a label decides."""
    again = "then create its pods again"
    kind, name = workload or ("pod", "")
    match reason:
        case MatchReason.NAMESPACE_EXCLUDED:
            return "run the workload in another namespace"
        case MatchReason.NAMESPACE_EXEMPT:
            return f"kubectl label namespace {namespace} {EXEMPT_NAMESPACE_LABEL}- ; {again}"
        case _ if workload is None and reason in {MatchReason.NO_LABEL, MatchReason.KIND_NEEDS_OWN_LABEL}:
            return f"create the pod again with the label {OPT_IN_LABEL}=true"
        case MatchReason.NO_LABEL:
            return f"kubectl label namespace {namespace} {OPT_IN_LABEL}=true ; {again}"
        case MatchReason.KIND_NEEDS_OWN_LABEL:
            return f"kubectl label {kind} {name} -n {namespace} {OPT_IN_LABEL}=true ; {again}"
        case MatchReason.WORKLOAD_OPTED_OUT:
            return f"remove the label {OPT_IN_LABEL}=false from the {kind} and its pods ; {again}"
        case _:
            return ""
