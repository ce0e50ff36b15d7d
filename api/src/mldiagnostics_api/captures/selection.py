"""The pods that a capture selects: by name, workload, labels or run."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mldiagnostics_api.captures.refusal import RefusalError
from mldiagnostics_api.captures.run_target import RunPods, RunTarget, run_pods
from mldiagnostics_api.captures.targets import TargetFilter
from mldiagnostics_api.formats import quote
from mldiagnostics_api.names import RefusalReason
from mldiagnostics_api.v1alpha1 import LABEL_KEY, LabelSelector, MLDiagnosticsConnection, TriggerCapture
from mldiagnostics_api.v1alpha1.shared import WorkloadRef
from mldiagnostics_api.workloads.kinds import SELECTABLE_KINDS, WorkloadKind, selector_text, workload_of


@dataclass(frozen=True, slots=True)
class PodSelection:
    """The selected pods, and those of them that are targets."""

    pods: RunPods
    selector: str | None
    target_filter: TargetFilter


def selection(connection: MLDiagnosticsConnection, namespace: str, run: RunTarget | None) -> PodSelection:
    """Return the pods that a capture selects.

    Args:
        connection: The object.
        namespace: Namespace of the pods.
        run: The MLRun that `target.runRef` names; None if there is none.

    Raises:
        RefusalError: The selection is not valid, or the run has no pods.
    """
    trigger = connection.spec.trigger_capture
    names, target_filter, labels = _names(trigger.pod_name), _target_filter(trigger), _labels(trigger)
    target = trigger.target
    reference = target.workload_ref if target else None
    pods = RunPods(_workload(reference), reference.name if reference else "", names, frozenset())
    selector = None if labels is None else selector_text(labels)
    if selector == "":
        raise RefusalError(
            RefusalReason.INVALID,
            "target.selector: empty, it would match every pod of the namespace; name at least one label",
        )
    if target is not None and target.run_ref is not None:
        if namespace != connection.metadata.namespace:
            raise RefusalError(
                RefusalReason.INVALID,
                f"podNamespace '{namespace}': not allowed with target.runRef, whose pods are in the namespace of the "
                "capture; remove podNamespace",
            )
        pods = run_pods(target.run_ref.name, namespace, run)
    return PodSelection(pods, selector, target_filter)


def _workload(reference: WorkloadRef | None) -> WorkloadKind | None:
    if reference is None:
        return None
    workload = workload_of(reference.kind, reference.api_version)
    if workload is None or workload.groups or workload.kind == "Pod":
        kind = f"{reference.api_version} {reference.kind}" if reference.api_version else reference.kind
        raise RefusalError(
            RefusalReason.KIND_NOT_SUPPORTED,
            f"target.workloadRef: {kind} is not a supported kind; use one of {', '.join(SELECTABLE_KINDS)}",
        )
    return workload


def _names(pod_name: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for part in (pod_name or "").split(",") if (name := part.strip())))


def _labels(trigger: TriggerCapture) -> Mapping[str, Any] | None:
    """Return the label selector as the API has it; None without one."""
    if trigger.target is None or trigger.target.selector is None:
        return None
    _check_selector(trigger.target.selector)
    return trigger.target.selector.model_dump(by_alias=True, exclude_none=True)


def _check_selector(selector: LabelSelector) -> None:
    for key in selector.match_labels or {}:
        _check_label_key("matchLabels", key)
    for condition in selector.match_expressions or ():
        _check_label_key("matchExpressions", condition.key)
        if (condition.operator in {"In", "NotIn"}) != bool(condition.values):
            raise RefusalError(
                RefusalReason.INVALID,
                f"target.selector.matchExpressions: '{condition.key}' with {condition.operator}: "
                "In and NotIn need values, Exists and DoesNotExist must not have values",
            )


def _check_label_key(field: str, key: str) -> None:
    """Refuse a key that selectors reject; the schema bounds its characters only."""
    prefix, _, name = key.rpartition("/")
    if not re.fullmatch(LABEL_KEY, key) or len(prefix) > 253 or len(name) > 63:
        raise RefusalError(
            RefusalReason.INVALID,
            f"target.selector.{field}: {quote(key)} is not a valid label key; use at most 63 characters, "
            "after a prefix of at most 253 characters and '/'",
        )


def _target_filter(trigger: TriggerCapture) -> TargetFilter:
    try:
        return TargetFilter.of(trigger.target)
    except ValueError as error:
        raise RefusalError(RefusalReason.INVALID, f"target.{error}") from error
