"""Decide what becomes of a capture that another process began: leave it, take it up, begin again or close it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

# A live holder writes its verdict soon after the deadline; later it is taken for hung.
GRACE = timedelta(seconds=30)
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that executes a capture, as `status.holder` names it: `<pod>/<pod uid>/<start, Unix s>-<token>`."""

    pod: str
    uid: str
    started: datetime | None

    @classmethod
    def parse(cls, text: str) -> Holder:
        """Read a holder; parts that do not parse are empty, so that it counts as unknown."""
        pod, uid, process = (*text.split("/"), "", "")[:3]
        seconds = process.partition("-")[0]
        known = seconds.isascii() and seconds.isdigit() and len(seconds) <= 10
        return cls(pod, uid, datetime.fromtimestamp(int(seconds), UTC) if known else None)


@dataclass(frozen=True, slots=True)
class HolderPod:
    """What the API server says about the pod that a holder names; both clocks are that node's."""

    uid: str
    running: bool
    container_started: datetime | None


class Liveness(Enum):
    """Whether the process behind a holder still works."""

    ALIVE = auto()
    DEAD = auto()
    UNKNOWN = auto()


def liveness(holder: str, *, me: str, pod: HolderPod | None) -> Liveness:
    """Judge a holder by its pod; `pod` None means that no such pod exists, `me` is this process.

    A holder in our own pod, or in a pod whose container started after it, is an earlier process and dead.
    One that names no pod (an operator on someone's laptop) cannot be judged.
    """
    them, us = Holder.parse(holder), Holder.parse(me)
    if holder == me:
        return Liveness.DEAD  # asked only when this process no longer works on it
    if not them.uid:
        return Liveness.UNKNOWN
    if them.uid == us.uid or pod is None or pod.uid != them.uid or not pod.running:
        return Liveness.DEAD
    if them.started is not None and pod.container_started is not None and pod.container_started > them.started:
        return Liveness.DEAD
    return Liveness.ALIVE


def leave_until(judged: Liveness, *, deadline: datetime | None, now: datetime) -> datetime | None:
    """Say until when another holder's capture is left alone; None means that it may be taken over now."""
    if judged is Liveness.DEAD or deadline is None:
        return None
    until = deadline + GRACE
    return until if now < until else None


@dataclass(frozen=True, slots=True)
class Resume:
    """Nothing has started yet: go on as if nothing had happened."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """The recording was lost: record anew, under the next session."""

    attempt: int


@dataclass(frozen=True, slots=True)
class FinishInterrupted:
    """Some of it is stored, or it was lost twice: what is missing stays missing."""


def decide(
    *, attempt: int, planned_start: datetime | None, stored: int, now: datetime
) -> Resume | StartAgain | FinishInterrupted:
    """Choose how a capture whose holder is gone goes on; `stored` counts the traces of this attempt in the store."""
    if stored:
        return FinishInterrupted()
    if planned_start is not None and now < planned_start:
        return Resume()
    return StartAgain(attempt + 1) if attempt < ATTEMPTS else FinishInterrupted()
