"""Keeps one MLRun for each run: its parts, and the reactions to events."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import MLRunPhase

from mldiagnostics_operator.runs.adoption import RunAdoption
from mldiagnostics_operator.runs.artifacts import RunArtifacts
from mldiagnostics_operator.runs.cluster_records import ClusterRecords
from mldiagnostics_operator.runs.deletion import RunDeletions
from mldiagnostics_operator.runs.ended_runs import EndedRuns
from mldiagnostics_operator.runs.expiry import RunExpiry
from mldiagnostics_operator.runs.next_status import next_status
from mldiagnostics_operator.runs.observer import RunObserver
from mldiagnostics_operator.runs.queue_watches import QueueWatches
from mldiagnostics_operator.runs.resync import RunResync
from mldiagnostics_operator.runs.run import Run
from mldiagnostics_operator.runs.run_book import RunBook
from mldiagnostics_operator.runs.run_watch import RunWatch
from mldiagnostics_operator.runs.run_writer import RunWriter
from mldiagnostics_operator.runs.sessions import SessionFiles
from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities
from mldiagnostics_operator.runs.workload_watches import WorkloadWatches
from mldiagnostics_operator.runs.write_rate import WriteRate

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from mldiagnostics_api.reported import RunKey
    from mldiagnostics_api.v1alpha1 import MLRunStatus
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.clock import Clock
    from mldiagnostics_kube.informer import Backoff

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.control_plane.table import ReportTable
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.runs.observed import ObservedWorkload
    from mldiagnostics_operator.runs.run_pods import LabelKey
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)


class RunKeeper:
    """Finds the runs of workloads and reports, and keeps their status.

    Args:
        cluster: Client of the API server.
        config: Settings of the operator.
        telemetry: Metrics of the operator.
        holder: Name of this process in events.
        storage: Opens directories.
        reports: Reports of processes.
        exchange: Receives the sessions of captures.
        clock: Wall clock.
        backoff: Pauses of watches after failures.
    """

    def __init__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        storage: Storage,
        reports: ReportTable,
        exchange: RunExchange,
        clock: Clock,
        backoff: Backoff,
    ) -> None:
        self._reports = reports
        self._exchange = exchange
        self._telemetry = telemetry
        self._clock = clock
        self._view_url = config.view_url
        self._book = RunBook()
        rate, namespaces = WriteRate(), config.watch_namespaces or (None,)
        self._writer = RunWriter(
            cluster,
            telemetry,
            rate,
            next_status=self._next_status,
            written=self._on_written,
            gone=self._on_gone,
            me=holder,
            clock=clock,
        )
        self._ended = EndedRuns(cluster, self._book, changed=self._writer.consider, drop=self._remove)
        self._watches = WorkloadWatches(cluster, config.watch_namespaces, self._on_workload, telemetry, backoff=backoff)
        self._adoption = RunAdoption(
            cluster,
            self._book,
            self._watches,
            WorkloadIdentities(cluster, config.cluster_name, self._watches.namespace_labels),
            rate,
            changed=self._writer.consider,
            telemetry=telemetry,
            clock=clock,
        )
        self._records = ClusterRecords(storage, config.policy)
        self._deletions = RunDeletions(
            cluster,
            namespaces,
            RunArtifacts(storage, config.policy),
            rate,
            telemetry,
            records=self._records,
            me=holder,
            clock=clock,
            backoff=backoff,
        )
        self._expiry = RunExpiry(
            cluster,
            namespaces,
            rate,
            ttl_s=config.runs_ttl_s,
            keep=config.runs_kept,
            clock=clock,
            seen=self._deletions.consider,
        )
        self._objects = RunWatch(cluster, namespaces, self._on_run, self._on_run_left, telemetry, backoff=backoff)
        self.observer: Final = RunObserver(
            cluster,
            config.watch_namespaces,
            self._on_pods,
            telemetry,
            is_followed=self._book.has_pods,
            backoff=backoff,
            clock=clock,
        )
        self._queues = QueueWatches(cluster, self._on_queue, telemetry, backoff=backoff, clock=clock)
        self._resync = RunResync(
            self._book,
            self._objects,
            self._watches,
            adoption=self._adoption,
            observer=self.observer,
            queues=self._queues,
            reports=self._reports,
            changed=self._writer.consider,
            telemetry=telemetry,
        )
        self._files = SessionFiles(storage, config.policy)
        self._reports.subscribe(self._on_report)
        self._exchange.subscribe(self._on_session)

    @property
    def unfinished(self) -> Collection[RunKey]:
        """The keys of the runs that have not ended."""
        return self._book.unfinished

    def stop_accepting(self) -> None:
        """Create no run any more."""
        self._adoption.stop()

    async def drain(self) -> None:
        """Return when no write is in progress."""
        await self._writer.drain()

    async def run(self, serve: Callable[[asyncio.TaskGroup], None]) -> None:
        """Keep the runs until cancelled; `serve` starts to accept reports."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._objects.run())
            await self._objects.until_installed()
            group.create_task(self._watches.run())
            group.create_task(self._writer.run())
            group.create_task(self.observer.run())
            group.create_task(self._files.run(self._book, changed=self._writer.consider))
            group.create_task(self._adoption.run(is_installed=lambda: self._objects.installed))
            group.create_task(self._ended.run())
            group.create_task(self._records.run())
            group.create_task(self._queues.run())
            group.create_task(self._resync.run())
            group.create_task(self._expiry.run())
            group.create_task(self._deletions.run())
            serve(group)

    # Events of watches and reports: they change memory only.

    def _on_workload(self, observed: ObservedWorkload, left: bool) -> None:
        run = self._book.of_workload(observed.uid)
        if left and (run is None or run.finished):
            self._book.note_deleted(observed.uid)
        elif run is not None and run.finished:
            return
        elif run is not None and not left:
            run.observed, run.watched = observed, True
            self._writer.consider(run)
        elif run is not None:
            run.watched = False
            self._adoption.enqueue(observed)
        elif not self._book.has_ended(observed.uid):
            self._adoption.enqueue(observed)

    def _on_run(self, body: Mapping[str, Any]) -> None:
        self._deletions.consider(body)
        try:
            newer = Run.of(body)
        except ValueError as error:
            _log.warning("A run cannot be read and is ignored: %s", error)
            return
        run = self._book.get(newer.key)
        if run is not None and run.meta.uid == newer.meta.uid:
            run.absorb(newer)
        else:
            run = self._book.add(newer)
        if run.workload is None or run.observed is not None or run.gone:  # else its workload is read first
            self._writer.consider(run)

    def _on_run_left(self, namespace: str, name: str) -> None:
        run = self._book.get((namespace, name))
        if run is not None and not (run.finished and run.workload is not None):  # ended runs stay for a while
            self._on_gone(run)

    def _on_report(self, key: RunKey) -> None:
        run = self._book.of_report(key)
        if run is not None:
            self._writer.consider(run)

    def _on_session(self, key: RunKey) -> None:
        if self._book.of_report(key) is None:
            self._ended.recall(key)
        else:
            self._on_report(key)

    def _on_pods(self, key: LabelKey) -> None:
        run = self._book.of_pods(key)
        if run is not None:
            self._writer.consider(run)

    def _on_queue(self, uid: str) -> None:
        run = self._book.of_workload(uid)
        if run is not None and not run.finished:
            self._writer.consider(run)

    def _on_written(self, run: Run, before: MLRunStatus) -> None:
        if before.attempts != run.status.attempts:
            self._records.note(run)
        if before.phase is not run.status.phase:
            self._telemetry.runs.phase(run.status.phase or MLRunPhase.PENDING)
            if run.finished and run.workload is not None:
                self._book.note_end(run)
                self._ended.keep(run)

    def _on_gone(self, run: Run) -> None:
        """Forget a run whose object is gone; a workload that still runs gets another one."""
        self._remove(run)
        if not run.finished and run.watched and run.observed is not None:
            self._adoption.enqueue(run.observed)

    def _remove(self, run: Run) -> None:
        self._writer.drop(run)
        self._book.remove(run)
        self.observer.forget(run.pods_key)

    def _next_status(self, run: Run) -> MLRunStatus:
        facts = run.facts(self._reports.view(run.report_key) if run.run_id else None)
        queue = self._queues.verdict(run.meta.namespace, run.observed.uid) if run.observed else None
        if queue is not None and queue.evicted is not None:
            self.observer.note(run.pods_key, queue.evicted)  # it stays when the workload is admitted again
        sessions = self._exchange.sessions(run.report_key)
        return next_status(
            run, facts, self.observer, queue=queue, sessions=sessions, now=self._clock(), view_url=self._view_url
        )
