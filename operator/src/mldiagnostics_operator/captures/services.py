"""What all captures of one operator share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.capture.budget import ByteBudget
    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.captures.gate import Gate
    from mldiagnostics_operator.captures.planning import Planner
    from mldiagnostics_operator.captures.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The edges and the queue of one process."""

    cluster: ApiClient
    planner: Planner
    storage: Storage
    gate: Gate
    telemetry: OperatorMetrics
    budget: ByteBudget
    me: str
    """This process, as `status.holder` names it."""
    namespace: str
    """Where the operator's own pods are."""
    versions: Mapping[str, str]
