"""The controller of runs: an MLRun for each opted-in or reported workload."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mldiagnostics_kube.clock import Clock, utc_now
from mldiagnostics_kube.informer import Backoff

from mldiagnostics_operator.control_plane.service import serve
from mldiagnostics_operator.control_plane.table import ReportTable
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.keeper import RunKeeper
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.controller import Event
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

RESTART_S: Final = 10.0
"""Pause before work that failed starts again."""
BACKOFF: Final = Backoff(absent_s=10.0)


class RunController:
    """Keeps one MLRun for each run; `holder` names this process in events."""

    name: ClassVar[str] = "runs"
    resource: ClassVar[None] = None
    """Captures must go on without MLRun, after an upgrade that left its definition out: it is followed here."""
    field_selector: ClassVar[str] = ""

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        exchange: RunExchange | None = None,
        clock: Clock = utc_now,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self.reports = ReportTable()
        exchange = exchange or RunExchange()
        exchange.reports = self.reports
        self._cluster = cluster
        self._config = config
        self._telemetry = telemetry
        self._storage = storage.apart()  # captures go on while the storage of runs hangs
        self._accepting = True
        self._serving: asyncio.Task[None] | None = None
        self._keeper = RunKeeper(
            cluster,
            config,
            telemetry,
            holder=holder,
            storage=self._storage,
            reports=self.reports,
            exchange=exchange,
            clock=clock,
            backoff=backoff,
        )

    def observe(self, body: Mapping[str, Any], event: Event) -> None:
        """Do nothing: the controller follows its objects itself."""

    def reset(self) -> None:
        """Do nothing: the controller follows its definition itself."""

    def stop_accepting(self) -> None:
        """Create no run and accept no report any more: the next leader does it."""
        self._accepting = False
        self._keeper.stop_accepting()
        if self._serving:
            self._serving.cancel()

    async def drain(self) -> None:
        """Return when no write is in progress and all reports are persisted."""
        if self._serving:
            await asyncio.wait({self._serving})
        await self._keeper.drain()

    async def run(self) -> None:
        """Keep the runs until cancelled; a failure does not end the leadership."""
        try:
            await self._keep_running("runs", lambda: self._keeper.run(self._start_serving))
        finally:
            self._storage.close()

    def _start_serving(self, group: asyncio.TaskGroup) -> None:
        if self._config.control_plane and self._accepting:
            self._serving = group.create_task(self._keep_running("control plane", self._serve_reports))

    async def _keep_running(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await keep_running(name, work, failed=self._telemetry.work_failed, pause_s=RESTART_S)

    async def _serve_reports(self) -> None:
        await serve(
            self._cluster,
            self._config,
            self._telemetry,
            self.reports,
            lambda: self._keeper.unfinished,
            storage=self._storage,
            deleted_pods=self._keeper.observer.deleted_pods,
        )
