"""Start-up and causes that only the cluster knows, joined to an account; pure.

The operator writes them to `reported/cluster.json` in the directory of the run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.goodput.account import Disruption


VERSION = 1
MAX_BYTES = 4 << 20
"""Largest record that is read; an attempt takes up to 2 KiB."""
SLACK_US = 60_000_000
"""Clocks of the operator and of the hosts differ, and the operator sees an end some seconds later."""
STAGES = ("queueing", "scheduling", "pull", "startup")

_UNKNOWN = frozenset({"", "unknown"})
_PLANNED = frozenset({"scale_up"})
"""Recorded causes that are not failures."""


@dataclass(frozen=True, slots=True)
class ClusterAttempt:
    """An attempt as the cluster shows it."""

    ended: int | None
    """End in microseconds of POSIX time; None while it runs."""
    cause: str = ""
    """Cause of its end, such as `node lost`; empty if none is known."""
    message: str = ""
    """The object that shows the cause, and its words."""
    start_up_s: Mapping[str, float] = field(default_factory=dict)
    """Seconds by stage: queueing, scheduling, pull and startup."""


@dataclass(frozen=True, slots=True)
class ClusterRecord:
    """All that the cluster shows of a run."""

    created: int | None = None
    """Creation of the workload in microseconds of POSIX time."""
    attempts: tuple[ClusterAttempt, ...] = ()

    @classmethod
    def parse(cls, text: bytes) -> ClusterRecord:
        """Return the record in a file.

        Raises:
            ValueError: The file is not such a record.
        """
        document = json.loads(text)
        if not isinstance(document, dict) or document.get("v") != VERSION:
            raise ValueError(f"not a record of the cluster of version {VERSION}")
        try:
            attempts = tuple(map(_attempt, document["attempts"]))
            return cls(_microseconds(document.get("created")), attempts)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"not a record of the cluster: {error!r}") from error

    @property
    def start_up_s(self) -> dict[str, float]:
        """Seconds of all start-ups by stage; empty if none is known."""
        known = [attempt.start_up_s for attempt in self.attempts if attempt.start_up_s]
        return {stage: sum(each.get(stage, 0.0) for each in known) for stage in STAGES} if known else {}


NOTHING_RECORDED = ClusterRecord()
"""The record of a run outside a cluster."""


def joined_cause(recorded: str, shown: str) -> str:
    """Return the cause of a disruption.

    The program knows more of its own failures than the cluster, and the cluster more of everything else.

    Args:
        recorded: The cause in the goodput log.
        shown: The cause that the cluster shows; empty if none is known.
    """
    if shown in _UNKNOWN or recorded in _PLANNED:
        return recorded
    return recorded if shown == "exit code" and recorded not in _UNKNOWN else shown


def explained(disruptions: Sequence[Disruption], record: ClusterRecord) -> list[Disruption]:
    """Return the disruptions with the causes that the cluster shows.

    An attempt of the cluster belongs to the disruption in which it ended; each one counts once.
    """
    moments = [(attempt.ended, attempt) for attempt in record.attempts if attempt.ended is not None]
    ended = sorted(moments, key=lambda item: item[0])
    result: list[Disruption] = []
    for disruption in disruptions:
        first, last = disruption.lost - SLACK_US, disruption.restarted + SLACK_US
        index = next((index for index, (moment, _) in enumerate(ended) if first <= moment <= last), None)
        if index is None:
            result.append(disruption)
            continue
        attempt = ended[index][1]
        del ended[: index + 1]
        cause = joined_cause(disruption.cause, attempt.cause)
        message = attempt.message if cause != disruption.cause or cause == attempt.cause else ""
        result.append(replace(disruption, cause=cause, message=message))
    return result


def _attempt(document: Mapping[str, Any]) -> ClusterAttempt:
    stages = document.get("startUpSeconds") or {}
    return ClusterAttempt(
        ended=_microseconds(document.get("ended")),
        cause=str(document.get("cause") or ""),
        message=str(document.get("message") or ""),
        start_up_s={stage: float(stages[stage]) for stage in STAGES if stage in stages},
    )


def _microseconds(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1e6)
