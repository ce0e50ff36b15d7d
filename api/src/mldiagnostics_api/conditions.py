"""Conditions of Kubernetes objects, read from the API object."""

from dataclasses import dataclass
from datetime import datetime

from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.workloads.kinds import Object


@dataclass(frozen=True, slots=True)
class ConditionView:
    """One condition of any object; strings are empty without a value."""

    status: str
    reason: str
    message: str
    since: datetime | None
    """Time of the last change of the status."""

    @property
    def holds(self) -> bool:
        """Whether the status is True."""
        return self.status == "True"


def condition_of(item: Object, kind: str) -> ConditionView | None:
    """Return the condition of this type; None if the object does not have it."""
    for condition in (item.get("status") or {}).get("conditions") or ():
        if condition.get("type") == kind:
            return ConditionView(
                condition.get("status") or "Unknown",
                condition.get("reason") or "",
                condition.get("message") or "",
                optional_time(condition.get("lastTransitionTime")),
            )
    return None


def true_since(item: Object, kind: str) -> datetime | None:
    """Return since when a condition is True; None if it is not."""
    condition = condition_of(item, kind)
    return condition.since if condition is not None and condition.holds else None
