"""The options that repeat `mldiag capture`.

A capture at once imports no rules of schedules.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class RecurrenceArguments:
    """The options of `mldiag capture` that repeat it.

    Periods are texts such as `10m`; triggers are `Type` or `Type=PERCENT`.
    """

    every: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    triggers: Sequence[str] = ()
    per_day: int | None = None
    pulse: bool = False

    @property
    def are_given(self) -> bool:
        """Whether the capture is to be repeated."""
        return bool(self.every or self.cron or self.triggers)
