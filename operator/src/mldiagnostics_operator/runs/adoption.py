"""Adoption: the object of each run that a workload or a report shows."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics_api.names import FINISHED_RUN_PHASES
from mldiagnostics_api.resources import RUNS
from mldiagnostics_api.run_names import reported_run_name, run_name
from mldiagnostics_api.run_reports import SILENT_S
from mldiagnostics_kube.apiserver import (
    ClusterError,
    Conflict,
    NamespaceTerminating,
    NotFound,
    Unavailable,
    path_to,
)
from mldiagnostics_kube.retry import retry

from mldiagnostics_operator.runs.run import Run, run_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

    from mldiagnostics_api.reported import RunKey
    from mldiagnostics_kube.client import ApiClient
    from mldiagnostics_kube.clock import Clock

    from mldiagnostics_operator.control_plane.table import ReportTable
    from mldiagnostics_operator.runs.observed import ObservedWorkload
    from mldiagnostics_operator.runs.run_book import RunBook
    from mldiagnostics_operator.runs.workload_identity import WorkloadIdentities
    from mldiagnostics_operator.runs.workload_watches import WorkloadWatches
    from mldiagnostics_operator.runs.write_rate import WriteRate
    from mldiagnostics_operator.telemetry import OperatorMetrics

_log: Final = logging.getLogger(__name__)

ADOPTERS: Final = 4
LATE: Final = timedelta(days=1)
"""A workload that ended before gets no run: its run may have been deleted on purpose."""
REPORT_GRACE_S: Final = 30.0
"""A run that pods report belongs to a workload, whose watch may be late by this much."""


class RunAdoption:
    """Finds or creates the runs of workloads and reports.

    It also reads the workloads that no watch delivers.

    Args:
        cluster: Client of the API server.
        book: The runs in memory, which gets the adopted ones.
        watches: Know the newest observation of a workload.
        identities: Decide which workloads are runs.
        rate: Limit on all writes of runs.
        changed: Receives each run with news.
        telemetry: Metrics of the operator.
        clock: Wall clock.
    """

    def __init__(
        self,
        cluster: ApiClient,
        book: RunBook,
        watches: WorkloadWatches,
        identities: WorkloadIdentities,
        rate: WriteRate,
        *,
        changed: Callable[[Run], None],
        telemetry: OperatorMetrics,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._book = book
        self._watches = watches
        self._identities = identities
        self._rate = rate
        self._changed = changed
        self._telemetry = telemetry
        self._clock = clock
        self._queue: asyncio.Queue[ObservedWorkload] = asyncio.Queue()
        self._queued: set[str] = set()
        self._accepting = True

    def enqueue(self, observed: ObservedWorkload) -> None:
        """Find the run of a workload soon."""
        if observed.uid not in self._queued:
            self._queued.add(observed.uid)
            self._queue.put_nowait(observed)

    def stop(self) -> None:
        """Create no run any more."""
        self._accepting = False

    async def run(self, *, is_installed: Callable[[], bool]) -> None:
        """Work through the queue until cancelled, several workloads at a time."""
        async with asyncio.TaskGroup() as group:
            for _ in range(ADOPTERS):
                group.create_task(self._adopt_queued(is_installed))

    async def read_again(self, run: Run) -> None:
        """Read the workload of a run that no watch delivers. Raises ClusterError."""
        if run.workload is None or run.kind is None:
            return
        observed = await self._identities.read(run.kind, run.meta.namespace, run.workload.name)
        if observed is None or (run.workload.uid and observed.uid != run.workload.uid):
            run.gone = True
        else:
            self._follow(run, observed)
        self._changed(run)

    async def add_reported(self, reports: ReportTable) -> None:
        """Create the runs that only reports show."""
        for key in reports.runs():
            reported = reports.view(key)
            if reported is None or self._book.of_report(key) or self._book.has_end_of(key) or not self._accepting:
                continue
            now_s = self._clock().timestamp()
            in_cluster = any(host.pod for host in reported.hosts)
            if in_cluster and now_s - reported.first_received < REPORT_GRACE_S:
                continue
            if now_s - reported.last_received > SILENT_S:
                continue  # it ended or was lost, and its object says so
            await self._create_reported(key, reported.group, reported.name)

    async def _create_reported(self, key: RunKey, group: str, title: str) -> None:
        name = reported_run_name(key.run_id)
        try:
            run = await self._create(run_manifest(name, key.namespace, key.run_id, group=group, title=title))
        except ClusterError as error:
            _log.warning("The reported run %s in %s has no object: %s", key.run_id, key.namespace, error)
        else:
            if run is not None:
                self._changed(run)

    async def _adopt_queued(self, is_installed: Callable[[], bool]) -> None:
        while True:
            observed = await self._queue.get()
            self._queued.discard(observed.uid)
            if not self._accepting or not is_installed():
                continue  # every workload is reported again when the definition is served again
            try:
                await retry(lambda: self._adopt_or_read(observed), on=Unavailable)  # noqa: B023 - called at once
            except (ClusterError, ValueError) as error:
                level = logging.DEBUG if isinstance(error, NamespaceTerminating) else logging.WARNING
                _log.log(level, "%s %s/%s has no run: %s", observed.kind.kind, observed.namespace, observed.name, error)

    async def _adopt_or_read(self, observed: ObservedWorkload) -> None:
        run = self._book.of_workload(observed.uid)
        await (self.read_again(run) if run else self._adopt(observed))

    async def _adopt(self, observed: ObservedWorkload) -> None:
        """Create the run of a workload that is opted in, unless it exists."""
        opted_in = await self._identities.decide(observed)
        if opted_in is None or self._book.of_workload(opted_in.observed.uid):
            return
        observed = opted_in.observed
        state = observed.state
        if state and state.ended and state.phase in FINISHED_RUN_PHASES and self._clock() - state.ended > LATE:
            self._book.note_no_run(observed.uid)
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
            self._book.note_no_run(observed.uid)
        elif run.finished:
            self._book.note_end(run)
            self._book.remove(run)
        else:
            self._follow(run, observed)
            self._changed(run)

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
            self._telemetry.runs.created()
        except Conflict:
            existing = await self._cluster.items(path, dict, fields=f"metadata.name={metadata['name']}")
            if not existing:
                return None
            body = existing[0]
        except NotFound:
            return None
        run = Run.of(body)
        known = self._book.get(run.key)
        return known if known is not None and known.meta.uid == run.meta.uid else self._book.add(run)
