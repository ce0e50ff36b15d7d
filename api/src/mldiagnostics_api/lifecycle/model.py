"""The state of a workload, and the functions that all readers share."""

from dataclasses import dataclass, replace
from datetime import datetime

from mldiagnostics_api.lifecycle.fields import Fields, mappings, text, time
from mldiagnostics_api.names import MLRunPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """The state of a workload, without the history that the run adds."""

    phase: MLRunPhase = MLRunPhase.PENDING
    reason: str = "Created"
    message: str = ""
    attempt: int = 0
    """Number of the attempt, from 0, by the controller's own count."""
    counts_pods: bool = False
    """Whether this count includes every replaced pod."""
    suspended: bool = False
    """Whether a queue or a user holds the workload back."""
    queue: str = ""
    """Kueue's LocalQueue; empty without one."""
    admitted: bool | None = True
    """Whether no queue holds it back; None if only its pods show that."""
    admission: str = ""
    """Kueue's reason to hold it back; empty if it is not known."""
    hosts: int | None = None
    """Number of pods of the workload by its spec; None if another object decides it."""
    ran: bool = True
    """Whether a final state shows that pods ran."""
    started: datetime | None = None
    ended: datetime | None = None
    endless: bool = False
    """Whether its kind never completes, so that deletion is its usual end."""
    independent: bool = False
    """Whether its pods have no ranks: each runs a program of its own."""


def by_conditions(status: Fields, state: Lifecycle, *, completed: str) -> Lifecycle:
    """Return the final state if a condition says so, else `state`."""
    for condition in mappings(status.get("conditions")):
        type_ = text(condition.get("type"))
        if condition.get("status") == "True" and type_ in (completed, "Failed"):
            phase = MLRunPhase.FAILED if type_ == "Failed" else MLRunPhase.COMPLETED
            return replace(
                state,
                phase=phase,
                reason=text(condition.get("reason")) or type_,
                message=text(condition.get("message")),
                ended=time(condition.get("lastTransitionTime")),
            )
    return state


def phase_of(started: bool) -> MLRunPhase:
    """Return the phase of a workload that has not ended."""
    return MLRunPhase.ACTIVE if started else MLRunPhase.PENDING
