"""Decide how a capture of another process goes on: leave, resume, retry or finish."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, auto

GRACE = timedelta(seconds=30)
"""A live holder writes the final status soon after the deadline; later it counts as hung."""
ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that runs a capture, as `status.holder` names it.

    The format is `<pod>/<pod uid>/<start, Unix s>-<token>`.
    """

    pod: str
    uid: str
    started: datetime | None

    @classmethod
    def parse(cls, text: str) -> Holder:
        """Parse a holder; invalid parts are empty, so that it counts as unknown."""
        pod, uid, process = (*text.split("/"), "", "")[:3]
        seconds = process.partition("-")[0]
        known = seconds.isascii() and seconds.isdigit() and len(seconds) <= 10
        return cls(pod, uid, datetime.fromtimestamp(int(seconds), UTC) if known else None)


@dataclass(frozen=True, slots=True)
class HolderPod:
    """The pod that a holder names; its times are those of its node."""

    uid: str
    running: bool
    container_started: datetime | None


class Liveness(Enum):
    """Whether the process of a holder still works."""

    ALIVE = auto()
    DEAD = auto()
    UNKNOWN = auto()


def liveness(holder: str, *, me: str, pod: HolderPod | None) -> Liveness:
    """Return whether the process of a holder works, by its pod.

    A holder in our own pod, or in a pod whose container started after it, is an earlier process and dead. A holder
    without a pod (an operator on a laptop) is unknown.

    Args:
        holder: The holder.
        me: This process, as a holder.
        pod: The pod that the holder names; None if it does not exist.
    """
    them, us = Holder.parse(holder), Holder.parse(me)
    if holder == me:
        return Liveness.DEAD  # this process does not work on it any more, or it would not take it over
    if not them.uid:
        return Liveness.UNKNOWN
    if them.uid == us.uid or pod is None or pod.uid != them.uid or not pod.running:
        return Liveness.DEAD
    if them.started is not None and pod.container_started is not None and pod.container_started > them.started:
        return Liveness.DEAD
    return Liveness.ALIVE


def leave_until(judged: Liveness, *, deadline: datetime | None, now: datetime) -> datetime | None:
    """Return until when the capture is left to its holder; None: take it over now."""
    if judged is Liveness.DEAD or deadline is None:
        return None
    until = deadline + GRACE
    return until if now < until else None


@dataclass(frozen=True, slots=True)
class Resume:
    """Go on with the same attempt: its planned start is still to come."""


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start the next attempt: the recording was lost."""

    attempt: int


@dataclass(frozen=True, slots=True)
class FinishInterrupted:
    """Finish the attempt: a trace is or was stored, or the second attempt was lost."""


def decide(
    *, attempt: int, planned_start: datetime | None, traces: int, now: datetime
) -> Resume | StartAgain | FinishInterrupted:
    """Return how a capture goes on whose holder is dead.

    `traces` is the number of targets of this attempt that are known to have a trace, wherever it is.
    """
    if traces:
        return FinishInterrupted()
    if planned_start is not None and now < planned_start:
        return Resume()
    return StartAgain(attempt + 1) if attempt < ATTEMPTS else FinishInterrupted()
