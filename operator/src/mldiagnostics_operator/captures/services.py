"""The parts that all captures of one operator share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.capture.budget import ByteBudget
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.captures.planning import Planner
    from mldiagnostics_operator.captures.queue.capture_queue import CaptureQueue
    from mldiagnostics_operator.captures.volume_share import VolumeShare
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The edges, the queue and the clock of one process."""

    cluster: ApiClient
    planner: Planner
    queue: CaptureQueue
    storage: Storage
    share: VolumeShare
    exchange: RunExchange
    """Receives the sessions of captures for their runs."""
    telemetry: OperatorMetrics
    budget: ByteBudget
    clock: Clock
    me: str
    """This process, as `status.holder` names it."""
    namespace: str
    """The namespace of the operator's own pods."""
    versions: Mapping[str, str]
    diagnoses: bool
    """Whether captures that do not say it are diagnosed."""
