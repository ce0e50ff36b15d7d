"""The controller of runs: an MLRun for each opted-in or reported workload."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, Final

from mldiagnostics_kube.cache.informer import Backoff
from mldiagnostics_kube.process.clock import Clock, SteadyClock

from mldiagnostics_operator.control_plane.limits import RETURN_S
from mldiagnostics_operator.control_plane.memory.budget import DEFAULT_LIMIT_BYTES, ReportBudget
from mldiagnostics_operator.control_plane.memory.table import ReportTable
from mldiagnostics_operator.control_plane.service import serve
from mldiagnostics_operator.results.service import ResultsApi
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.cleanup.ended_runs import EndedRuns
from mldiagnostics_operator.runs.cleanup.run_cleanup import RunCleanup
from mldiagnostics_operator.runs.creation import RunCreation
from mldiagnostics_operator.runs.event_handlers import RunEventHandlers
from mldiagnostics_operator.runs.keys import Key
from mldiagnostics_operator.runs.reconciler import RunReconciler
from mldiagnostics_operator.runs.resync import RunResync
from mldiagnostics_operator.runs.run_index import RunIndex
from mldiagnostics_operator.runs.services import RunServices
from mldiagnostics_operator.runs.status.cluster_records import ClusterRecords
from mldiagnostics_operator.runs.status.inputs import InputReader
from mldiagnostics_operator.runs.status.run_writer import RunWriter
from mldiagnostics_operator.runs.watches.run_watches import RunWatches
from mldiagnostics_operator.runs.watches.session_files import SessionFiles
from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities
from mldiagnostics_operator.supervision import keep_running
from mldiagnostics_operator.workqueue import Workqueue

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

BACKOFF: Final = Backoff(absent_s=10.0)


class RunController:
    """Keeps one MLRun for each run; `holder` names this process in events.

    It watches its objects itself: captures go on without MLRun, after an upgrade that left its definition out.
    """

    name: ClassVar[str] = "runs"

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        exchange: RunExchange | None = None,
        clock: Clock | None = None,
        backoff: Backoff = BACKOFF,
    ) -> None:
        clock = clock or SteadyClock().now  # silence is a duration
        self._accepting = True
        self._serving: asyncio.Task[None] | None = None
        self.reports: Final = ReportTable(
            ReportBudget(config.memory_limit or DEFAULT_LIMIT_BYTES), listening_since=clock().timestamp() + RETURN_S
        )
        exchange = exchange or RunExchange()
        exchange.reports = self.reports
        apart = storage.apart()  # captures go on while the storage of runs hangs
        self._services = services = RunServices(
            cluster=cluster, config=config, telemetry=telemetry, storage=apart, clock=clock, backoff=backoff, me=holder
        )
        self._runs = RunIndex()
        self._queue = Workqueue[Key]()
        self._records = ClusterRecords(apart, config.policy, clock)
        self._session_files = SessionFiles(apart, config.policy)
        self._cleanup = RunCleanup(services, self._records)
        self.handlers: Final = RunEventHandlers(self._runs, self._queue, self._cleanup.deletions, self._records)
        self._watches = RunWatches(services, self.handlers, is_followed=self._runs.has_pods)
        identities = WorkloadIdentities(
            cluster, config.cluster_name, self._watches.workloads, has_ended=self._runs.has_ended
        )
        self._creation = RunCreation(services, self._runs, identities, self.reports)
        ended = EndedRuns()
        self.reconciler: Final = RunReconciler(
            self._runs,
            self._queue,
            self._watches,
            inputs=InputReader(
                self._watches, identities, self.reports, exchange, view_url=config.view_url, policy=config.policy
            ),
            creation=self._creation,
            writer=RunWriter(services, self._records),
            ended=ended,
            clock=clock,
        )
        self._resync = RunResync(self.reconciler, self._creation, self.reports, ended, services)
        self.reports.subscribe(self.handlers.on_report)
        exchange.subscribe(self.handlers.on_session)

    def stop_accepting(self) -> None:
        """Create no run and accept no report any more: the next leader does it."""
        self._accepting = False
        self._creation.stop()
        if self._serving:
            self._serving.cancel()

    async def drain(self) -> None:
        """Return when no write is in progress and all reports are persisted."""
        if self._serving:
            await asyncio.wait({self._serving})
        await self._queue.drain()

    async def run(self) -> None:
        """Keep the runs until cancelled; a failure does not end the leadership."""
        try:
            await self._keep_running("runs", self._work)
        finally:
            self._services.storage.close()

    async def _work(self) -> None:
        """Watch, reconcile and clean up, from the moment at which MLRun is served."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._watches.runs.run())
            await self._watches.runs.until_installed()
            group.create_task(self._watches.run())
            group.create_task(self._session_files.run(self._runs, changed=self._queue.add))
            group.create_task(self.reconciler.run())
            group.create_task(self._resync.run())
            group.create_task(self._records.run())
            group.create_task(self._cleanup.run())
            if self._services.config.control_plane and self._accepting:
                self._serving = group.create_task(self._keep_running("control plane", self._serve_reports))
            if self._services.config.results_port is not None and self._accepting:
                group.create_task(self._keep_running("API for files", self._serve_files))

    async def _keep_running(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await keep_running(name, work, failed=self._services.telemetry.work_failed)

    async def _serve_files(self) -> None:
        services = self._services
        await ResultsApi(services.cluster, services.config, answered=services.telemetry.files_answered).run()

    async def _serve_reports(self) -> None:
        services = self._services
        await serve(
            services.cluster,
            services.config,
            services.telemetry,
            self.reports,
            lambda: self._runs.unfinished,
            storage=services.storage,
            deleted_pods=self._watches.pods.deleted_pods,
            on_record=self._records.subscribe,
            clock=lambda: services.clock().timestamp(),
        )
