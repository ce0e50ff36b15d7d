"""Rules: functions from a job to findings, with their texts in the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mldiagnostics.findings import FindingHost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mldiagnostics.findings import Finding, Severity

    from mldiagnostics_diagnosis.matching import Job


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; the texts are the rows of the reference page."""

    code: str
    finds: str
    thresholds: str
    abstains: str
    find: Callable[[Job], Iterable[Finding]]


def host_at(job: Job, index: int) -> FindingHost:
    """Return a host of the job by its index."""
    return FindingHost(job.summaries[index].host)


def severity_of(share: float, *, critical: float) -> Severity:
    """Return the severity of a cost."""
    return "critical" if share >= critical else "warning"


def milliseconds(seconds: float) -> str:
    """Return a time for a message.

    >>> milliseconds(0.0191), milliseconds(0.00042)
    ('19.1 ms', '0.42 ms')
    """
    value = seconds * 1000
    return f"{value:.0f} ms" if value >= 100 else f"{value:.1f} ms" if value >= 1 else f"{value:.2f} ms"


def percent(share: float) -> str:
    """Return a share for a message.

    >>> percent(0.456)
    '46 %'
    """
    return f"{share * 100:.0f} %"
