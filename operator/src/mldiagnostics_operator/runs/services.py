"""The edges, the limit and the clock that the parts of the run controller share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mldiagnostics_operator.runs.status.write_rate import WriteRate

if TYPE_CHECKING:
    from collections.abc import Collection

    from mldiagnostics_kube.cache.informer import Backoff
    from mldiagnostics_kube.client.api_client import ApiClient
    from mldiagnostics_kube.process.clock import Clock

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """The edges of a leadership, as its work on runs needs them."""

    cluster: ApiClient
    config: OperatorConfig
    telemetry: OperatorMetrics
    storage: Storage
    clock: Clock
    backoff: Backoff
    """Pauses of watches after failures."""
    me: str
    """Name of this process in events."""
    rate: WriteRate = field(default_factory=WriteRate)
    """Limit on all writes of runs."""

    @property
    def namespaces(self) -> Collection[str | None]:
        """Namespaces of the runs; None stands for all."""
        return self.config.watch_namespaces or (None,)
