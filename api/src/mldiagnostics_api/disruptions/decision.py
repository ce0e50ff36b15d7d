"""The cause of a disruption, decided from all evidence of an attempt."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from mldiagnostics_api.disruptions.causes import PRECEDENCE, DisruptionCause
from mldiagnostics_api.disruptions.evidence import Evidence

WINDOW: Final = timedelta(seconds=400)
"""Evidence this long after the first one is a consequence: a lost node shows after 50 s (the controller manager's grace
period for nodes), its pods are deleted after 300 s more (their default toleration)."""


@dataclass(frozen=True, slots=True)
class DisruptionVerdict:
    """The cause of a disruption, and the evidence for it."""

    cause: DisruptionCause
    time: datetime | None
    """When the disruption began, as far as the evidence shows."""
    message: str


def decide(evidence: Iterable[Evidence], *, ended: datetime | None = None) -> DisruptionVerdict:
    """Return the cause of a disruption; `Unknown` without evidence.

    Of the evidence within the window after its beginning, the cause that explains the others counts, then the earliest.

    Args:
        evidence: Evidence from all objects of the attempt, in any order.
        ended: When the attempt ended, if it is known: evidence long before did not end it.
    """
    items = sorted(set(evidence), key=lambda item: (item.time, item.subject, item.cause, item.detail))
    if ended is not None:
        items = [item for item in items if ended - item.time <= WINDOW]
    current = [item for item in items if item.time - items[0].time <= WINDOW]
    if not current:
        return DisruptionVerdict(DisruptionCause.UNKNOWN, None, "pods, nodes and events show no cause")
    leading = min(current, key=lambda item: PRECEDENCE[item.cause])
    return DisruptionVerdict(leading.cause, items[0].time, _message(leading, current))


def _message(leading: Evidence, current: Sequence[Evidence]) -> str:
    same = {item.subject for item in current if item.cause is leading.cause} - {leading.subject}
    others = f" (and {len(same)} more)" if same else ""
    return f"{leading.subject}{others}: {leading.detail}"
