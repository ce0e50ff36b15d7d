"""The parts that all captures of one operator share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.capture.budget import ByteBudget
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.clock import Clock

    from mldiagnostics_operator.captures.gate import Gate
    from mldiagnostics_operator.captures.planning import Planner
    from mldiagnostics_operator.captures.trials import PlanningTrials
    from mldiagnostics_operator.fair_slots import FairSlots
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The edges, the queue and the clock of one process."""

    cluster: ApiClient
    planner: Planner
    trials: PlanningTrials
    storage: Storage
    line: FairSlots
    """Captures that may hold a plan: those that run, and the next ones of each namespace."""
    waiting_reports: FairSlots
    """Writes of statuses that say why a capture waits."""
    exchange: RunExchange
    """Receives the sessions of captures for their runs."""
    gate: Gate
    telemetry: OperatorMetrics
    budget: ByteBudget
    clock: Clock
    me: str
    """This process, as `status.holder` names it."""
    namespace: str
    """The namespace of the operator's own pods."""
    versions: Mapping[str, str]
