"""The controller of runs: an MLRun for each opted-in or reported workload."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from mldiagnostics_api.names import FINISHED_RUN_PHASES, MLRunPhase
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_names import reported_run_name, run_name
from mldiagnostics_api.run_reports import SILENT_S
from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, Unavailable, path_to
from mldiagnostics_kube.clock import Clock, utc_now
from mldiagnostics_kube.informer import Backoff, Informer, Selection, SyncState
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.control_plane.service import serve
from mldiagnostics_operator.control_plane.table import ReportTable
from mldiagnostics_operator.run_exchange import RunExchange
from mldiagnostics_operator.runs.expiry import RunExpiry
from mldiagnostics_operator.runs.next_status import next_status
from mldiagnostics_operator.runs.observer import RunObserver
from mldiagnostics_operator.runs.run import Run, run_manifest
from mldiagnostics_operator.runs.run_store import RunStore
from mldiagnostics_operator.runs.run_writer import RunWriter
from mldiagnostics_operator.runs.sessions import SessionFiles
from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities
from mldiagnostics_operator.runs.workload_watches import WorkloadWatches
from mldiagnostics_operator.runs.write_rate import WriteRate
from mldiagnostics_operator.storage import Storage
from mldiagnostics_operator.supervision import keep_running

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mldiagnostics_api.reported import RunKey
    from mldiagnostics_api.run_status import RunFacts
    from mldiagnostics_api.v1alpha1 import MLRunStatus
    from mldiagnostics_kube.client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.controller import Event
    from mldiagnostics_operator.runs.observed import ObservedWorkload
    from mldiagnostics_operator.runs.run_pods import LabelKey
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

CHECK_S: Final = 0.5
"""Pause between two checks whether the definition of MLRun is served."""
RESYNC_S: Final = 10.0
"""Pause between two looks at runs that no watch delivers, and at hosts that may have become silent."""
RESTART_S: Final = 10.0
"""Pause before work that failed starts again."""
ADOPTERS: Final = 4
ADOPTION_S: Final = 300.0
"""Pause between two listings of the profiles of runs: a bucket bills each listing."""
LATE: Final = timedelta(days=1)
"""A workload that ended before gets no run: its run may have been deleted on purpose."""
REPORT_GRACE_S: Final = 30.0
"""A run that pods report belongs to a workload, whose watch may be late by this much."""
BACKOFF: Final = Backoff(absent_s=10.0)
_KNOWN_ENDS: Final = 16_384
_UNFINISHED: Final = ",".join(f"status.phase!={phase}" for phase in sorted(FINISHED_RUN_PHASES))


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
        exchange: RunExchange | None = None,
        clock: Clock = utc_now,
        backoff: Backoff = BACKOFF,
    ) -> None:
        self.reports = ReportTable()
        self._exchange = exchange or RunExchange()
        self._exchange.reports = self.reports
        self._cluster = cluster
        self._config = config
        self._telemetry = telemetry
        self._clock = clock
        self._namespaces: tuple[str | None, ...] = config.watch_namespaces or (None,)
        self._runs: dict[tuple[str, str], Run] = {}
        self._by_workload: dict[str, Run] = {}
        self._by_report: dict[RunKey, Run] = {}
        self._by_pods: dict[LabelKey, Run] = {}
        self._ended: set[str] = set()
        """Uids of existing workloads whose run is finished."""
        self._reported_ends: dict[RunKey, None] = {}
        """Runs of workloads that are finished: late reports make no other object of them."""
        self._queue: asyncio.Queue[ObservedWorkload] = asyncio.Queue()
        self._queued: set[str] = set()
        self._accepting = True
        self._rate = WriteRate()
        self._writer = RunWriter(
            cluster,
            telemetry,
            self._rate,
            next_status=self._next_status,
            written=self._on_written,
            gone=self._drop,
            me=holder,
            clock=clock,
        )
        self._watches = WorkloadWatches(cluster, config.watch_namespaces, self._on_workload, telemetry, backoff=backoff)
        self._identities = WorkloadIdentities(cluster, config.cluster_name, self._watches.namespace_labels)
        self._expiry = RunExpiry(
            cluster,
            self._namespaces,
            self._rate,
            ttl_s=config.runs_ttl_s,
            keep=config.runs_kept,
            clock=clock,
        )
        self._informers = [
            Informer(
                RUNS.plural,
                [path_to(*RUNS.gvr, namespace=namespace)],
                cluster=cluster,
                store=RunStore(self._on_run, self._on_run_left),
                metrics=telemetry,
                backoff=backoff,
                selection=Selection(fields=_UNFINISHED, metadata_only=False),
            )
            for namespace in self._namespaces
        ]
        self._observer = RunObserver(
            cluster,
            config.watch_namespaces,
            self._on_pods,
            telemetry,
            is_followed=self._by_pods.__contains__,
            backoff=backoff,
            clock=clock,
        )
        self._storage = Storage(config.volume_root)
        self._files = SessionFiles(self._storage, config.policy)
        self.reports.subscribe(self._on_report)
        self._exchange.subscribe(self._on_report)

    def observe(self, body: Mapping[str, Any], event: Event) -> None:
        """Do nothing: the controller follows its objects itself."""

    def reset(self) -> None:
        """Do nothing: the controller follows its definition itself."""

    def stop_accepting(self) -> None:
        """Create no run any more: the next leader does it."""
        self._accepting = False

    async def drain(self) -> None:
        """Return when no write is in progress."""
        await self._writer.drain()

    async def run(self) -> None:
        """Keep the runs until cancelled; a failure does not end the leadership."""
        try:
            await self._keep_running("runs", self._keep_runs)
        finally:
            self._storage.close()

    async def _keep_runs(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            await self._until_installed()
            group.create_task(self._watches.run())
            group.create_task(self._writer.run())
            group.create_task(self._observer.run())
            group.create_task(self._adopt_sessions())
            for _ in range(ADOPTERS):
                group.create_task(self._adopt_queued())
            group.create_task(self._resync())
            group.create_task(self._expiry.run())
            if self._config.control_plane:
                group.create_task(self._keep_running("control plane", self._serve_reports))

    async def _keep_running(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        await keep_running(name, work, failed=self._telemetry.work_failed, pause_s=RESTART_S)

    async def _serve_reports(self) -> None:
        await serve(self._cluster, self._config, self._telemetry, self.reports, self._by_report.keys)

    async def _until_installed(self) -> None:
        """Wait until the definition of MLRun is served; captures go on meanwhile."""
        logged = False
        while not self._installed:
            absent = any(informer.state in (SyncState.ABSENT, SyncState.FORBIDDEN) for informer in self._informers)
            self._telemetry.runs_missing(missing=absent)
            if absent and not logged:
                _log.warning(
                    "The custom resource %s is not served to the operator: no run is recorded, captures go on; "
                    "apply crds/, or install the chart's CRDs and roles",
                    RUNS.definition_name,
                )
                logged = True
            await asyncio.sleep(CHECK_S)
        self._telemetry.runs_missing(missing=False)

    @property
    def _installed(self) -> bool:
        return all(informer.state is SyncState.FOLLOWED for informer in self._informers)

    # Events of watches and reports: they change memory only.

    def _on_workload(self, observed: ObservedWorkload, left: bool) -> None:
        run = self._by_workload.get(observed.uid)
        if run is not None and not left:
            run.observed, run.watched = observed, True
            self._writer.consider(run)
        elif run is not None:
            run.watched = False
            self._enqueue(observed)
        elif left:
            self._ended.discard(observed.uid)
        elif observed.uid not in self._ended:
            self._enqueue(observed)

    def _on_run(self, body: Mapping[str, Any]) -> None:
        try:
            newer = Run.of(body)
        except ValueError as error:
            _log.warning("A run cannot be read and is ignored: %s", error)
            return
        run = self._runs.get(newer.key)
        if run is not None and run.meta.uid == newer.meta.uid:
            run.absorb(newer)
        else:
            run = self._add(newer)
        if run.workload is None or run.observed is not None or run.gone:  # else its workload is read first
            self._writer.consider(run)

    def _on_run_left(self, namespace: str, name: str) -> None:
        run = self._runs.get((namespace, name))
        if run is not None:
            self._drop(run)

    def _on_report(self, key: RunKey) -> None:
        run = self._by_report.get(key)
        if run is not None:
            self._writer.consider(run)

    def _on_pods(self, key: LabelKey) -> None:
        run = self._by_pods.get(key)
        if run is not None:
            self._writer.consider(run)

    def _on_written(self, run: Run, before: MLRunStatus) -> None:
        if before.phase is not run.status.phase:
            self._telemetry.run_phase(run.status.phase or MLRunPhase.PENDING)
        if run.finished and run.workload is not None:
            self._forget(run)

    def _facts(self, run: Run) -> RunFacts:
        return run.facts(self.reports.view(run.report_key) if run.run_id else None)

    def _next_status(self, run: Run) -> MLRunStatus:
        sessions = self._exchange.sessions(run.report_key)
        return next_status(run, self._facts(run), self._observer, sessions, self._clock())

    def _add(self, run: Run) -> Run:
        self._runs[run.key] = run
        if run.workload and run.workload.uid:
            self._by_workload[run.workload.uid] = run
        if run.run_id:
            self._by_report[run.report_key] = run
            self._by_pods[run.pods_key] = run
        return run

    def _forget(self, run: Run) -> None:
        """Forget a finished run, but not that its workload has one."""
        if run.workload and run.workload.uid and not run.gone:
            self._ended.add(run.workload.uid)
        if len(self._reported_ends) >= _KNOWN_ENDS:
            self._reported_ends.pop(next(iter(self._reported_ends)))
        self._reported_ends[run.report_key] = None
        self._remove(run)

    def _drop(self, run: Run) -> None:
        """Forget a run whose object is gone; a workload that still runs gets another one."""
        self._remove(run)
        if not run.finished and run.watched and run.observed is not None:
            self._enqueue(run.observed)

    def _remove(self, run: Run) -> None:
        self._writer.drop(run)
        self._runs.pop(run.key, None)
        self._by_report.pop(run.report_key, None)
        self._by_pods.pop(run.pods_key, None)
        self._observer.forget(run.pods_key)
        if run.workload and run.workload.uid:
            self._by_workload.pop(run.workload.uid, None)

    # Work that waits for the API server.

    def _enqueue(self, observed: ObservedWorkload) -> None:
        if observed.uid not in self._queued:
            self._queued.add(observed.uid)
            self._queue.put_nowait(observed)

    async def _adopt_queued(self) -> None:
        while True:
            observed = await self._queue.get()
            self._queued.discard(observed.uid)
            if not self._accepting or not self._installed:
                continue  # every workload is reported again when the definition is served again
            try:
                run = self._by_workload.get(observed.uid)
                await retry(lambda: self._read_again(run) if run else self._adopt(observed), on=Unavailable)  # noqa: B023
            except (ClusterError, ValueError) as error:
                _log.warning("%s %s/%s has no run: %s", observed.kind.kind, observed.namespace, observed.name, error)

    async def _adopt(self, observed: ObservedWorkload) -> None:
        """Create the run of a workload that is opted in, unless it exists."""
        opted_in = await self._identities.decide(observed)
        if opted_in is None or opted_in.observed.uid in self._by_workload:
            return
        observed = opted_in.observed
        state = observed.state
        if state and state.ended and state.phase in FINISHED_RUN_PHASES and self._clock() - state.ended > LATE:
            self._ended.add(observed.uid)
            return
        run_id = opted_in.identity.run_id
        manifest = run_manifest(
            run_name(observed.name, run_id),
            observed.namespace,
            run_id,
            workload=opted_in.reference,
            group=opted_in.identity.group or "",
        )
        run = await self._create(manifest)
        if run is None:
            return
        if run.workload is None or run.workload.uid != observed.uid:
            _log.warning(
                "%s %s/%s has no run: %s is that of another workload, created in the same second",
                observed.kind.kind,
                observed.namespace,
                observed.name,
                run.meta.name,
            )
            self._ended.add(observed.uid)
        elif run.finished:
            self._forget(run)
        else:
            self._follow(run, observed)
            self._writer.consider(run)

    def _follow(self, run: Run, observed: ObservedWorkload) -> None:
        """Give a run the newest observation of its workload.

        Events may have arrived since this one.
        """
        newest = self._watches.newest(observed)
        run.observed, run.watched = newest or observed, newest is not None

    async def _create(self, manifest: dict[str, Any]) -> Run | None:
        """Create a run, or return that of this name; None without a namespace."""
        metadata = manifest["metadata"]
        path = path_to(*RUNS.gvr, namespace=metadata["namespace"])
        await self._rate.take()
        try:
            body = await self._cluster.create(path, manifest)
            self._telemetry.run_created()
        except Conflict:
            existing = await self._cluster.items(path, dict, fields=f"metadata.name={metadata['name']}")
            if not existing:
                return None
            body = existing[0]
        except NotFound:
            return None
        run = Run.of(body)
        known = self._runs.get(run.key)
        return known if known is not None and known.meta.uid == run.meta.uid else self._add(run)

    async def _read_again(self, run: Run) -> None:
        """Read the workload of a run that no watch delivers."""
        if run.workload is None or run.kind is None:
            return
        observed = await self._identities.read(run.kind, run.meta.namespace, run.workload.name)
        if observed is None or (run.workload.uid and observed.uid != run.workload.uid):
            run.gone = True
        else:
            self._follow(run, observed)
        self._writer.consider(run)

    async def _resync(self) -> None:
        """Look at every run now and then: time alone makes hosts silent."""
        await self._until_settled()
        while True:
            for run in tuple(self._runs.values()):
                if run.workload is not None and not run.watched and not run.gone and run.key in self._runs:
                    try:
                        await self._read_again(run)
                    except ClusterError as error:
                        _log.debug("The workload of %s/%s cannot be read: %s", *run.key, error)
                self._writer.consider(run)
            await self._add_reported()
            self._telemetry.runs_followed(len(self._runs), left_out=self._watches.left_out)
            await asyncio.sleep(RESYNC_S)
            if not self._installed:
                await self._until_installed()
                self._watches.report_all()

    async def _adopt_sessions(self) -> None:
        """List the storage of each run now and then, one after the other."""
        while True:
            await asyncio.sleep(ADOPTION_S)
            for run in tuple(self._runs.values()):
                if run.run_id and run.key in self._runs:
                    run.adopted = await self._files.sessions(run.meta.namespace, run.run_id, run.storage_location)
                    self._writer.consider(run)

    async def _until_settled(self) -> None:
        """Wait until the watches have listed the workloads.

        Before, an absent workload may only be late.
        """
        while not self._watches.settled:  # noqa: ASYNC110 - the state of many informers, at the start only
            await asyncio.sleep(CHECK_S)

    async def _add_reported(self) -> None:
        """Create the runs that only reports show."""
        for key in self.reports.runs():
            reported = self.reports.view(key)
            if reported is None or key in self._by_report or key in self._reported_ends or not self._accepting:
                continue
            now_s = self._clock().timestamp()
            in_cluster = any(host.pod for host in reported.hosts)
            if in_cluster and now_s - reported.first_received < REPORT_GRACE_S:
                continue
            if now_s - reported.last_received > SILENT_S:
                continue  # it ended or was lost, and its object says so
            manifest = run_manifest(
                reported_run_name(key.run_id), key.namespace, key.run_id, group=reported.group, title=reported.name
            )
            try:
                run = await self._create(manifest)
            except ClusterError as error:
                _log.warning("The reported run %s in %s has no object: %s", key.run_id, key.namespace, error)
            else:
                if run is not None:
                    self._writer.consider(run)
