"""A labelled pod for a dry run, which shows whether the webhook injects it; pure."""

from typing import Any, Final

from mldiagnostics_api.names import INJECTION_ANNOTATION, OPT_IN_LABEL, RUN_ANNOTATION

NOT_CALLED: Final = "the webhook was not called or did not answer; see its log and the labels of the namespace"


def trial_pod(name: str) -> dict[str, Any]:
    """Return a labelled pod for Pod Security `restricted`.

    Args:
        name: Name of the pod, which is part of its run id; every trial needs its own.
    """
    security = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    container = {"name": "main", "image": "none", "securityContext": security}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {OPT_IN_LABEL: "true"}},
        "spec": {
            "containers": [container],
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        },
    }


def trial_result(pod: dict[str, Any]) -> tuple[str | None, str]:
    """Return the run id of a pod from a dry run, and the reason if it has none."""
    annotations = pod["metadata"].get("annotations") or {}
    if run := annotations.get(RUN_ANNOTATION):
        return str(run), ""
    return None, str(annotations.get(INJECTION_ANNOTATION, NOT_CALLED))
