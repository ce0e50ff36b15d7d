"""The account of a run's time, as the operator has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedGoodput:
    """Account of a run's time over all its attempts, in seconds."""

    as_of: float
    """Moment of the account, in Unix seconds."""
    started: float
    """Start of the account, in Unix seconds."""
    elapsed: float
    productive: float
    unproductive: Mapping[str, float]
    """Seconds by bucket, those that are not empty; with `productive` they are `elapsed`."""
    disruptions: int
    attempts: int
    ettr: float | None = None
    """Productive share of the time since the creation of the workload, from 0 to 1."""
    mttr_seconds: float | None = None
    """Mean time to recover; None before the first recovery."""
    mttf_seconds: float | None = None
    """Mean time to failure; None before the first failure."""
    last_step: int | None = None

    @property
    def goodput(self) -> float | None:
        """The productive share of the elapsed time, from 0 to 1; None without time."""
        return self.productive / self.elapsed if self.elapsed > 0 else None
