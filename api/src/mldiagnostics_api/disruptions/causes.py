"""The causes of disruptions, one table entry each."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class DisruptionCause(StrEnum):
    """Why an attempt of a run ended before its work was done."""

    PREEMPTION = "Preemption"
    MAINTENANCE = "Maintenance"
    NODE_SHUTDOWN = "NodeShutdown"
    NODE_LOST = "NodeLost"
    EVICTION = "Eviction"
    QUOTA = "Quota"
    OUT_OF_MEMORY = "OutOfMemory"
    DEADLINE = "DeadlineExceeded"
    EXIT_CODE = "ExitCode"
    SUSPENDED = "Suspended"
    DELETED = "Deleted"
    START_FAILURE = "StartFailure"
    SCHEDULING = "Scheduling"
    UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class CauseEntry:
    """A cause, as users see it."""

    cause: DisruptionCause
    goodput: str
    """Name in the goodput account, beside `signal` and `exception`, which only the program knows."""
    meaning: str


CAUSES: Final = (
    CauseEntry(
        DisruptionCause.PREEMPTION,
        "preemption",
        "the scheduler, Kueue, a kubelet or the cloud took the resources for other work",
    ),
    CauseEntry(DisruptionCause.MAINTENANCE, "maintenance", "the node was announced for maintenance"),
    CauseEntry(DisruptionCause.NODE_SHUTDOWN, "node shutdown", "the node was shut down in order"),
    CauseEntry(DisruptionCause.NODE_LOST, "node lost", "the node stopped responding, restarted or was removed"),
    CauseEntry(
        DisruptionCause.EVICTION,
        "eviction",
        "the pod was evicted: by a drain, the autoscaler, a NoExecute taint, or for lack of memory or disk on its node",
    ),
    CauseEntry(DisruptionCause.QUOTA, "quota", "a queue or a quota withdrew or refused the resources"),
    CauseEntry(DisruptionCause.OUT_OF_MEMORY, "out of memory", "a container exceeded its memory limit"),
    CauseEntry(DisruptionCause.DEADLINE, "deadline", "a time limit of the workload or of its queue was reached"),
    CauseEntry(DisruptionCause.EXIT_CODE, "exit code", "a container ended with an exit code other than 0"),
    CauseEntry(DisruptionCause.SUSPENDED, "suspended", "the workload was suspended"),
    CauseEntry(
        DisruptionCause.DELETED, "deleted", "a pod or the workload was deleted; the API does not record by which user"
    ),
    CauseEntry(
        DisruptionCause.START_FAILURE,
        "start failure",
        "a container could not be started, for example without its image",
    ),
    CauseEntry(DisruptionCause.SCHEDULING, "scheduling", "the pods did not get nodes"),
    CauseEntry(DisruptionCause.UNKNOWN, "unknown", "the cluster shows no cause"),
)
"""In the order of precedence: a cause explains those below it, which are often its consequences."""

PRECEDENCE: Final = {entry.cause: index for index, entry in enumerate(CAUSES)}
_GOODPUT: Final = {str(entry.cause): entry.goodput for entry in CAUSES}


def goodput_name(cause: str) -> str:
    """Return the name of a cause in the goodput account; empty for no cause."""
    return _GOODPUT.get(cause, "")
