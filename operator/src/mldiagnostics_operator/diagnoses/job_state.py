"""The state of a Job and of its pods, as far as a diagnosis waits for it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.conditions import condition_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


_FAILED: Final = ("Failed", "FailureTarget")
_BLOCKED: Final = frozenset(
    {
        "CreateContainerConfigError",
        "CreateContainerError",
        "ErrImageNeverPull",
        "ErrImagePull",
        "ImageInspectError",
        "ImagePullBackOff",
        "InvalidImageName",
    }
)
"""Reasons of waiting that only a change of the Job or of the cluster ends."""
_LENGTH: Final = 512


def has_ended(job: Mapping[str, Any]) -> bool:
    """Return whether a Job has ended, or is about to end as failed."""
    conditions = (condition_of(job, kind) for kind in ("Complete", *_FAILED))
    return any(condition is not None and condition.holds for condition in conditions)


def never_started(job: Mapping[str, Any]) -> bool:
    """Return whether no container of a Job runs or has run."""
    status = job.get("status") or {}
    return not any(status.get(key) for key in ("ready", "succeeded", "failed"))


def blocked(pods: Iterable[Mapping[str, Any]]) -> str | None:
    """Return why a container cannot start; None if it can, or only waits."""
    for status in _container_statuses(pods):
        waiting = (status.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in _BLOCKED:
            return _sentence(waiting)
    return None


def loss(job: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> str:
    """Return how a container, or the Job, failed; empty if it is complete."""
    for status in _container_statuses(pods):
        ended = (status.get("state") or {}).get("terminated") or {}
        if ended.get("exitCode"):
            lines = (line.strip() for line in reversed(str(ended.get("message") or "").split("\n")))  # of its log
            code = f"its container ended with code {ended['exitCode']}"
            parts = [ended.get("reason") or "Error", code, next(filter(None, lines), "")]
            return ": ".join(filter(None, parts))[:_LENGTH]
    for kind in _FAILED:
        condition = condition_of(job, kind)
        if condition is not None and condition.holds:
            return _sentence({"reason": condition.reason, "message": condition.message})
    return ""


def _container_statuses(pods: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return (each for pod in pods for each in (pod.get("status") or {}).get("containerStatuses") or ())


def _sentence(state: Mapping[str, Any]) -> str:
    return ": ".join(str(state[key]) for key in ("reason", "message") if state.get(key))[:_LENGTH]
