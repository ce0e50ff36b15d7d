"""What the operator's probes report."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# Longer than kopf needs to notice a dead stream (70 s) and to list anew.
WATCH_LAG_LIMIT_S: Final = 120.0


class ReplicaStage(StrEnum):
    """What this replica is doing."""

    STARTING = "starting"
    STANDBY = "standby"
    WAITING = "waiting for the custom resource"
    ASIDE = "standing down for a managed add-on"
    LEADING = "leading"
    DRAINING = "finishing what runs"


@dataclass(slots=True)
class OperatorHealth:
    """What the probes report; the operator keeps it current."""

    stage: ReplicaStage = ReplicaStage.STARTING
    watch_lag_s: float = 0.0

    def live(self) -> tuple[bool, str]:
        """Whether a restart would not help: only a watch that lags behind an answering API server is worth one."""
        text = f"{self.stage}; the watch is {self.watch_lag_s:.0f} s behind the API server"
        return self.watch_lag_s <= WATCH_LAG_LIMIT_S, text

    def ready(self) -> tuple[bool, str]:
        """Whether this replica serves or can take over at any moment."""
        return self.stage not in (ReplicaStage.STARTING, ReplicaStage.DRAINING), self.stage
