"""Start-up of an attempt: from its creation to its first step, by stage.

Times are those that the API server, the scheduler and the kubelets recorded. A milestone that is known stays: pods and
events that gave it may be gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self

from mldiagnostics.text.counts import counted_of

from mldiagnostics_api.conditions import condition_of, true_since
from mldiagnostics_api.formats import optional_time
from mldiagnostics_api.workloads.kinds import Object

MESSAGE_LENGTH: Final = 256
"""Characters of a message of another component that are kept."""


class StartupStage(StrEnum):
    """A stage of the start-up; the stages follow each other without gaps."""

    QUEUEING = "queueing"
    """From creation to admission; a workload that no queue suspends is admitted when it is created."""
    SCHEDULING = "scheduling"
    """From admission to the moment at which all pods have nodes; creation of the pods included."""
    PULL = "pull"
    """From scheduling to the moment at which all images are on the nodes; volumes and init containers included."""
    STARTUP = "startup"
    """From the last image to the first step: start of the containers, initialisation, restore, compilation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodStartup:
    """The start of one pod; None stands for milestones that it has not reached."""

    name: str
    uid: str = ""
    scheduled: datetime | None = None
    pulled: datetime | None = None
    """From its events; without events, containers start as soon as their image is present."""
    started: datetime | None = None
    """Start of the last of its containers."""
    waiting: str = ""
    """Reason and message of the component that the pod waits for; empty if none gives one."""

    @classmethod
    def of(cls, pod: Object, *, pulled: datetime | None = None) -> Self:
        """Read a pod as the API returns it.

        Args:
            pod: The pod.
            pulled: Time of its last event `Pulled`, if it is known.
        """
        started = _started(pod)
        return cls(
            name=pod["metadata"]["name"],
            uid=pod["metadata"]["uid"],
            scheduled=true_since(pod, "PodScheduled"),
            pulled=pulled if pulled and (started is None or pulled <= started) else started,
            started=started,
            waiting=_waiting(pod),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StartupTimeline:
    """Milestones of an attempt, in their order; None stands for open ones."""

    created: datetime | None = None
    """Creation of the workload; of a later attempt, the end of the attempt before."""
    admitted: datetime | None = None
    scheduled: datetime | None = None
    pulled: datetime | None = None
    started: datetime | None = None
    first_step: datetime | None = None

    def merged(self, observed: Self) -> Self:
        """Return the timeline with the observed milestones that were not known before."""
        return type(self)(
            **{each.name: getattr(self, each.name) or getattr(observed, each.name) for each in fields(self)}
        )

    def stage(self) -> StartupStage | None:
        """Return the stage in which the attempt is; None after its first step."""
        reached = [stage for stage, milestone in self._ends() if milestone is not None]
        stages = list(StartupStage)
        following = stages.index(reached[-1]) + 1 if reached else 0
        return stages[following] if following < len(stages) else None

    def durations(self, now: datetime) -> Mapping[StartupStage, float]:
        """Return the seconds of each stage so far.

        They add up to the time from creation to the first step, or to now. The time between two known milestones is
        that of the stage that the later one ends. Clocks differ between nodes: a milestone before an earlier one counts
        as reached with it. Empty if the creation is not known.
        """
        if self.created is None:
            return {}
        seconds = dict.fromkeys(StartupStage, 0.0)
        end = max(self.created, self.first_step or now)
        reached = self.created
        for stage, milestone in self._ends():
            if milestone is not None:
                until = min(max(reached, milestone), end)
                seconds[stage] += (until - reached).total_seconds()
                reached = until
        current = self.stage()
        if current is not None:
            seconds[current] += (end - reached).total_seconds()
        return seconds

    def _ends(self) -> Iterable[tuple[StartupStage, datetime | None]]:
        return zip(
            StartupStage, (self.admitted, self.scheduled, self.pulled or self.started, self.first_step), strict=True
        )


def pods_startup(pods: Sequence[PodStartup], *, expected: int | None = None) -> StartupTimeline:
    """Return the milestones that all pods of an attempt have reached.

    Args:
        pods: The pods of one attempt that exist or existed.
        expected: Number of pods that the workload needs; None: those that exist.
    """
    if not pods or len(pods) < (expected or 0):
        return StartupTimeline()
    return StartupTimeline(
        scheduled=_last(pod.scheduled for pod in pods),
        pulled=_last(pod.pulled for pod in pods),
        started=_last(pod.started for pod in pods),
    )


def waiting_message(pods: Sequence[PodStartup], *, expected: int | None = None) -> str:
    """Return how many pods have started, and the reason of one that has not.

    Empty if all have.
    """
    total = max(len(pods), expected or 0)
    started = sum(pod.started is not None for pod in pods)
    if started == total:
        return ""
    blocked = min(((pod.name, pod.waiting) for pod in pods if pod.started is None and pod.waiting), default=None)
    message = f"{counted_of(started, total, 'pod')} started"
    return f"{message}; pod '{blocked[0]}': {blocked[1]}" if blocked else message


def event_time(event: Object) -> datetime | None:
    """Return when an event happened first, in both versions of the events API."""
    named = (event.get(field) for field in ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"))
    created = (event.get("metadata") or {}).get("creationTimestamp")
    return next(filter(None, map(optional_time, (*named, created))), None)


def _last(times: Iterable[datetime | None]) -> datetime | None:
    """Return the latest time; None if one is not known."""
    latest: datetime | None = None
    for time in times:
        if time is None:
            return None
        latest = time if latest is None else max(latest, time)
    return latest


def _started(pod: Object) -> datetime | None:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    if len(statuses) < len((pod.get("spec") or {}).get("containers") or ()):
        return None
    return _last(map(_container_start, statuses))


def _container_start(status: Mapping[str, Any]) -> datetime | None:
    """Return the start of a container, or of its instance before a restart."""
    for state in (status.get("lastState") or {}, status.get("state") or {}):
        moment = optional_time((state.get("terminated") or state.get("running") or {}).get("startedAt"))
        if moment is not None:
            return moment
    return None


def _waiting(pod: Object) -> str:
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None and not scheduled.holds:
        return _explained(scheduled.reason, scheduled.message)
    status = pod.get("status") or {}
    for container in (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())):
        waiting = (container.get("state") or {}).get("waiting")
        if waiting and waiting.get("reason") not in _ORDINARY_WAITS:
            return _explained(waiting.get("reason") or "", waiting.get("message") or "")
    return ""


_ORDINARY_WAITS: Final = frozenset({None, "", "ContainerCreating", "PodInitializing"})
"""Reasons of containers for which no component gives a cause."""


def _explained(reason: str, message: str) -> str:
    text = ": ".join(filter(None, (reason, " ".join(message.split()))))
    return text if len(text) <= MESSAGE_LENGTH else f"{text[: MESSAGE_LENGTH - 1]}…"
