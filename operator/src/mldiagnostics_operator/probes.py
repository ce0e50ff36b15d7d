"""The answers of the operator's probes."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

WATCH_LAG_LIMIT_S: Final = 120.0
"""Longer than kopf takes to notice a dead stream (70 s) and to list again."""


class ReplicaStage(StrEnum):
    """The current activity of this replica."""

    STARTING = "starting"
    STANDBY = "standby"
    WAITING = "waiting for the custom resource"
    ASIDE = "standing down for a managed add-on"
    LEADING = "leading"
    DRAINING = "finishing what runs"


@dataclass(slots=True)
class OperatorHealth:
    """The state that the probes report; the operator keeps it current."""

    stage: ReplicaStage = ReplicaStage.STARTING
    watch_lag_s: float = 0.0

    def live(self) -> tuple[bool, str]:
        """Return whether the process works, and a text.

        A restart helps only if the watch lags behind an API server that answers.
        """
        text = f"{self.stage}; the watch is {self.watch_lag_s:.0f} s behind the API server"
        return self.watch_lag_s <= WATCH_LAG_LIMIT_S, text

    def ready(self) -> tuple[bool, str]:
        """Return whether this replica leads or can take over, and its stage."""
        return self.stage not in (ReplicaStage.STARTING, ReplicaStage.DRAINING), self.stage
